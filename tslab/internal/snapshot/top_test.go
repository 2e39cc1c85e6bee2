package snapshot_test

import (
	"fmt"
	"testing"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/testdata"
)

// crowded is a document with a hundred labels more: label n holds n KiB, and has held 200 - n at most; none leaks.
func crowded() *snapshot.Snapshot {
	s := testdata.Snapshot()
	count := s.One(metrics.Registry).U("count")
	for n := range 100 {
		r := snapshot.NewRow(metrics.Label)
		set := func(key string, v uint64) { r.SetUint(metrics.Of(metrics.Label).Find(key), v) }
		set("label_id", count+uint64(n))
		set("committed_bytes", uint64(n)<<20)
		set("peak_bytes", uint64(200-n)<<20)
		set("objects_allocated", 7)
		r.SetText(metrics.Of(metrics.Label).Find("label"), fmt.Sprintf("label %d", n))
		s.Append(r)
	}
	s.One(metrics.Registry).SetUint(metrics.Of(metrics.Registry).Find("count"), count+100)
	return s
}

func TestTopLabels(t *testing.T) {
	s := crowded()
	all := len(s.Rows(metrics.Label))
	top := s.TopLabels(10)
	rows := top.Rows(metrics.Label)
	if len(rows) != 11 || !top.IsRest(rows[10]) || top.Left(metrics.Label) != uint64(all-10) || rows[10].S("label") != "(rest)" {
		t.Fatalf("%d rows, %d left out", len(rows), top.Left(metrics.Label))
	}
	names := map[string]bool{}
	for _, r := range rows {
		names[r.S("label")] = true
	}
	for _, want := range []string{"label 99", "label 95", "label 0", "label 4"} { // that hold most, and have held most
		if !names[want] {
			t.Errorf("no %q among %v", want, names)
		}
	}
	for _, key := range []string{"committed_bytes", "objects_allocated", "live_bytes"} {
		if a, b := s.Total(metrics.Label, key), top.Total(metrics.Label, key); a != b || a == 0 {
			t.Errorf("%s: %d of all, %d with the rest", key, a, b)
		}
	}
	if len(s.Rows(metrics.Label)) != all || s.Left(metrics.Label) != 0 || s.Document().U("labels_left_out") != 0 {
		t.Error("the snapshot is changed")
	}
	if again := top.TopLabels(5); again.Total(metrics.Label, "committed_bytes") != s.Total(metrics.Label, "committed_bytes") || again.Left(metrics.Label) != uint64(all-5) ||
		len(again.Rows(metrics.Label)) != 6 {
		t.Error("the rest of a rest", again.Left(metrics.Label))
	}
	if s.TopLabels(1000) != s {
		t.Error("few labels are copied")
	}
}

func TestTopLabelsOfSeveral(t *testing.T) {
	a, b := crowded(), crowded()
	both := snapshot.Together([]*snapshot.Snapshot{a, b})
	top := both.TopLabels(10)
	if len(top.Parts) != 2 || len(top.Rows(metrics.Label)) != 22 || top.Total(metrics.Label, "committed_bytes") != both.Total(metrics.Label, "committed_bytes") {
		t.Errorf("%d parts, %d rows", len(top.Parts), len(top.Rows(metrics.Label)))
	}
	for _, r := range both.Rows(metrics.Label) {
		if of := both.Of(r); of != a && of != b {
			t.Fatal("a row is of another snapshot")
		}
	}
	for n, r := range top.Rows(metrics.Label) {
		if top.Of(r) != top.Parts[n/11] {
			t.Fatal("a row is of another snapshot")
		}
	}
}
