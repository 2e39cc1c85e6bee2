package source

import (
	"strings"
	"testing"
)

func TestNamed(t *testing.T) {
	list := []Candidate{{3, "server --port 80"}, {4, "server-helper"}, {5, "worker a"}, {6, "worker b"}, {7, "python3 batch.py"}}
	for _, c := range []struct {
		name string
		pid  int
		says string
	}{
		{"server", 3, ""}, {"server-helper", 4, ""}, {"batch", 7, ""}, {"helper", 4, ""},
		{"worker", 0, `2 processes are called "worker": 5, 6; name one by its id`}, {"worker b", 6, ""},
		{"servr", 0, `is called "servr"; did you mean "server"?`}, {"", 0, "an empty name"}, {"postgres", 0, "there are: server server-helper worker python3"},
	} {
		pid, err := named(c.name, list)
		if pid != c.pid || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %d, %v", c.name, pid, err)
		}
	}
	if _, err := named("x", nil); err == nil || !strings.Contains(err.Error(), "start one with") {
		t.Error(err)
	}
}
