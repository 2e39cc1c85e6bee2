package snapshot_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/testdata"
)

// allocators are snapshots of a process with so many.
func allocators(n int) []*snapshot.Snapshot {
	var parts []*snapshot.Snapshot
	for i := range n {
		s := testdata.Snapshot()
		set := func(key string, v uint64) { s.Document().SetUint(metrics.Of(metrics.Document).Find(key), v) }
		set("allocator", uint64(i))
		set("allocators", uint64(n+1))
		set("changed_since", uint64(i%2))
		s.Named, s.Whole, s.Aged, s.Age = true, true, true, time.Duration(i)*4*time.Second
		parts = append(parts, s)
	}
	return parts
}

func TestTogether(t *testing.T) {
	one, s := testdata.Snapshot(), snapshot.Together(allocators(3))
	if got, want := s.Global().U("live_bytes"), 3*one.Global().U("live_bytes"); got != want || want == 0 {
		t.Errorf("live_bytes %d, not %d", got, want)
	}
	for _, key := range []string{"rss_bytes_current"} { // of the process
		if got, want := s.Global().U(key), one.Global().U(key); got != want || want == 0 {
			t.Errorf("%s %d, not %d", key, got, want)
		}
	}
	if got, want := s.Total(metrics.Label, "objects_allocated"), 3*one.Total(metrics.Label, "objects_allocated"); got != want || want == 0 {
		t.Errorf("objects_allocated %d, not %d", got, want)
	}
	for k, r := range s.Rows(metrics.Label) {
		if want := fmt.Sprint(k / len(one.Rows(metrics.Label))); r.AllocatorName() != want {
			t.Errorf("label row %d is of allocator %q, not %s", k, r.AllocatorName(), want)
		}
	}
	if s.Unseen() != 1 || s.Age != 8*time.Second || !s.Changed() || !s.Stale(snapshot.Latest) || s.Stale(5*time.Second) {
		t.Errorf("unseen %d, age %v, changed %v", s.Unseen(), s.Age, s.Changed())
	}
	if alone := allocators(1); snapshot.Together(alone) != alone[0] {
		t.Error("one alone is not itself")
	}
}

// The document of several is that of the sum, and has all there is to make it again.
func TestTogetherJSON(t *testing.T) {
	s := snapshot.Together(allocators(3))
	var b, c bytes.Buffer
	if err := s.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	again, err := snapshot.Parse(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Parts) != 3 || again.Parts[2].Allocator() != 2 || !again.Parts[2].Named {
		t.Fatalf("%d parts", len(again.Parts))
	}
	if err := again.WriteJSON(&c); err != nil || b.String() != c.String() {
		t.Error("what is read is not what was written", err)
	}
}
