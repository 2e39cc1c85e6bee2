package record

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"temporal-slab/tslab/internal/snapshot"
)

// FuzzOpen: any bytes as a recording. What is opened has readings in the order of the file; each is a document or an error,
// and each time, found or not, is answered.
func FuzzOpen(f *testing.F) {
	small, err := pack(snapshot.New().WriteJSON)
	if err != nil {
		f.Fatal(err)
	}
	whose, err := pack(func(w io.Writer) error {
		_, err := io.WriteString(w, `{"pid":9,"command":"x"}`)
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	head := append([]byte(first), frame(begin, unknownAge, snapshot.Unknown, whose)...)
	one := append(bytes.Clone(head), frame(begin, 5, snapshot.Running, small)...)
	f.Add([]byte(first))
	f.Add(head)
	f.Add(one)
	f.Add(append(bytes.Clone(one), frame(begin.Add(time.Second), unknownAge, snapshot.Ended, []byte("no gzip"))...))
	path := filepath.Join(f.TempDir(), "fuzzed")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path)
		if err != nil {
			return
		}
		defer r.Close()
		if r.Len() == 0 {
			t.Fatal("a recording without a reading")
		}
		for n := range min(r.Len(), 8) {
			s, err := r.Read(n)
			if (s == nil) != (err != nil) {
				t.Fatalf("reading %d: %v, %v", n, s, err)
			}
			if err == nil && !s.Recorded.Equal(r.At(n)) {
				t.Fatal("another time")
			}
		}
		for _, when := range []string{"", "start", "end", "+0s", "+1s", "-1s", "-0s", "12:00", "+99999h", "2026-01-31T23:59:00"} {
			if n, err := r.Find(when); err == nil && (n < 0 || n >= r.Len()) {
				t.Fatalf("%q is reading %d of %d", when, n, r.Len())
			}
		}
	})
}

// FuzzFind: any words as a time.
func FuzzFind(f *testing.F) {
	for _, when := range []string{"+90s", "-2m", "14:05", "14:05:30", "2026-01-31T14:05:30", "2026-01-31 23:59", "+1.5h", "+", "-9223372036854775808ns"} {
		f.Add(when)
	}
	r := &Reader{}
	for n := range 5 {
		r.frames = append(r.frames, place{at: begin.Add(time.Duration(n) * time.Minute)})
	}
	f.Fuzz(func(t *testing.T, when string) {
		if n, err := r.Find(when); err == nil && (n < 0 || n >= r.Len()) {
			t.Fatalf("%q is reading %d", when, n)
		}
		if path, at := Split(when); path+at != when && path+"@"+at != when {
			t.Fatalf("%q is taken apart to %q and %q", when, path, at)
		}
	})
}
