package record

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/testdata"
)

var begin = time.Date(2026, 1, 31, 23, 59, 0, 0, time.Local)

// reading is the document of package testdata, so many seconds after the first.
func reading(t *testing.T, second int) *snapshot.Snapshot {
	t.Helper()
	s := testdata.Snapshot()
	s.Global().SetUint(metrics.Of(metrics.Global).Find("live_bytes"), uint64(second))
	s.State = snapshot.Running
	return s
}

func made(t *testing.T, readings int, most int64) (path string, w *Writer) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "x.rec")
	w, err := Create(path, Whose{Pid: 9, Command: "server", Host: "h"}, most)
	if err != nil {
		t.Fatal(err)
	}
	for n := range readings {
		if err := w.Add(reading(t, n), begin.Add(time.Duration(n)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path, w
}

func opened(t *testing.T, path string) *Reader {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	path, _ := made(t, 5, 64<<20)
	r := opened(t, path)
	if r.Whose != (Whose{9, "server", "h"}) || r.Len() != 5 {
		t.Fatal(r.Whose, r.Len())
	}
	for n := range 5 {
		s, err := r.Read(n)
		if err != nil || s.Global().U("live_bytes") != uint64(n) || !s.Recorded.Equal(begin.Add(time.Duration(n)*time.Second)) || s.State != snapshot.Running {
			t.Fatal(n, err, s.Global().U("live_bytes"), s.Recorded, s.State)
		}
		var a, b bytes.Buffer
		_ = s.WriteJSON(&a)
		_ = reading(t, n).WriteJSON(&b)
		if a.String() != b.String() {
			t.Fatal("another document")
		}
	}
}

// A recorder may be killed at any byte: what was written whole is read.
func TestKilledAtAnyByte(t *testing.T) {
	path, _ := made(t, 3, 64<<20)
	whole, _ := os.ReadFile(path)
	r := opened(t, path)
	ends := []int64{r.frames[0].offset + headBytes + int64(r.frames[0].length), r.frames[1].offset + headBytes + int64(r.frames[1].length)}
	for cut := 1; cut < len(whole); cut += 97 {
		part := filepath.Join(t.TempDir(), "part")
		if err := os.WriteFile(part, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		want := 0
		for _, end := range ends {
			if int64(cut) >= end {
				want++
			}
		}
		got, err := Open(part)
		if want == 0 {
			if err == nil {
				t.Fatalf("%d bytes have a reading", cut)
			}
			continue
		}
		if err != nil || got.Len() != want {
			t.Fatalf("%d bytes: %v", cut, err)
		}
		if _, err := got.Read(want - 1); err != nil {
			t.Fatal(err)
		}
		got.Close()
	}
}

// A recording that has reached its bound spans all of the time, in steps that double.
func TestBounded(t *testing.T) {
	path, w := made(t, 150, LeastBytes)
	info, err := os.Stat(path)
	if err != nil || info.Size() > LeastBytes || info.Size() != w.Size() {
		t.Fatal(err, info.Size(), w.Size())
	}
	r := opened(t, path)
	step := w.Skip()
	if step < 2 || r.Len() < 150/step-2 {
		t.Fatal(step, r.Len())
	}
	for n := range r.Len() {
		if got := int(r.At(n).Sub(begin) / time.Second); got != n*step {
			t.Fatalf("reading %d is of second %d, steps of %d", n, got, step)
		}
	}
	if _, err := os.Stat(path + ".part"); err == nil {
		t.Error("a part is left")
	}
}

func TestTimes(t *testing.T) {
	path, _ := made(t, 121, 64<<20) // until a minute after midnight
	r := opened(t, path)
	for when, want := range map[string]int{"": 120, "end": 120, "start": 0, "+0s": 0, "+30s": 30, "+30.5s": 30, "-1m": 60, "23:59:07": 7, "23:59": 0, "00:00:30": 90, "00:01": 120,
		"2026-01-31T23:59:59": 59, "2026-02-01 00:00": 60, "2026-01-31 23:59:59": 59} {
		if n, err := r.Find(when); err != nil || n != want {
			t.Errorf("%q: %d, %v, not %d", when, n, err, want)
		}
	}
	for _, when := range []string{"12:00", "noon", "+x", "-", "2026-01-30T00:00:00", "+2h", "-5m", "25:00"} {
		if n, err := r.Find(when); err == nil || strings.Contains(err.Error(), "parsing") {
			t.Errorf("%q: %d, %v", when, n, err)
		}
	}
}

func TestSplit(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "a@b")
	if err := os.WriteFile(odd, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string][2]string{"x.rec": {"x.rec", ""}, "x.rec@+5s": {"x.rec", "+5s"}, "a@b@start": {"a@b", "start"}, odd: {odd, ""}, odd + "@end": {odd, "end"}} {
		if path, when := Split(word); path != want[0] || when != want[1] {
			t.Errorf("%s: %s, %s", word, path, when)
		}
	}
}

func TestDamaged(t *testing.T) {
	path, _ := made(t, 3, 64<<20)
	r := opened(t, path)
	whole, _ := os.ReadFile(path)
	for name, change := range map[string]func([]byte){
		"magic":   func(b []byte) { b[r.frames[1].offset] = 'x' },
		"version": func(b []byte) { b[r.frames[1].offset+4] = 9 },
		"length":  func(b []byte) { b[r.frames[1].offset+11] = 0xff },
		"time":    func(b []byte) { b[r.frames[1].offset+19] = 0xff },
	} {
		b := bytes.Clone(whole)
		change(b)
		bad := filepath.Join(t.TempDir(), "bad")
		_ = os.WriteFile(bad, b, 0o600)
		if _, err := Open(bad); err == nil || !strings.Contains(err.Error(), "is damaged at byte") {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := bytes.Clone(whole)
	b[r.frames[1].offset+headBytes+20] ^= 0xff
	bad := filepath.Join(t.TempDir(), "bad")
	_ = os.WriteFile(bad, b, 0o600)
	other := opened(t, bad)
	if _, err := other.Read(1); err == nil {
		t.Error("a damaged reading is read")
	}
	if _, err := other.Read(2); err != nil {
		t.Error("the one behind it is not", err)
	}
	for _, text := range []string{"", "{}", "tslab recording 1", "tslab recording 2\n"} {
		_ = os.WriteFile(bad, []byte(text), 0o600)
		if _, err := Open(bad); err == nil {
			t.Errorf("%q is a recording", text)
		}
	}
}

func TestRefused(t *testing.T) {
	if _, err := Create(filepath.Join(t.TempDir(), "x"), Whose{}, 5); err == nil {
		t.Error("five bytes are enough")
	}
	if _, err := Create(filepath.Join(t.TempDir(), "no", "x"), Whose{}, LeastBytes); err == nil || strings.Contains(err.Error(), "open ") {
		t.Error(err)
	}
	if _, err := Create("/dev/null", Whose{}, LeastBytes); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Error(err)
	}
}
