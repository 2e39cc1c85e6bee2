// Package testdata has what tests read: a document of stats_dump, and a process that only sleeps.
package testdata

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"temporal-slab/tslab/internal/snapshot"
)

// Mixed is what `stats_dump --no-text --seconds 1.1` wrote, but for its process id.
//
//go:embed mixed.json
var Mixed string

// Snapshot is Mixed with texts replaced, in pairs.
func Snapshot(replace ...string) *snapshot.Snapshot {
	s, err := snapshot.Parse(strings.NewReader(Edit(replace...)))
	if err != nil {
		panic(err)
	}
	return s
}

// Edit is Mixed with the first place of each text replaced; the texts have to be there.
func Edit(replace ...string) string {
	t := Mixed
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(t, replace[i]) {
			panic("the document has no " + replace[i])
		}
		t = strings.Replace(t, replace[i], replace[i+1], 1)
	}
	return t
}

// Sleeper starts a process with one more entry in its environment. It sleeps for ten minutes unless it is killed and
// waited for. Start returns as soon as the child has closed its descriptors; the kernel shows the environment a moment
// later, so Sleeper waits for that.
func Sleeper(t *testing.T, entry string) *exec.Cmd {
	c := exec.Command("sleep", "600")
	c.Env = append(os.Environ(), entry)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", c.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if len(environ) != 0 {
			return c
		}
		time.Sleep(time.Millisecond)
	}
}
