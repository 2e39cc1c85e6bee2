package cli

import (
	"testing"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
)

// keeping is a process that keeps objects in the ring, which two labels have made outside of their scopes.
func keeping(objects, byGet, byPost int) *snapshot.Snapshot {
	s := snapshot.New()
	set := func(r *snapshot.Row, pairs ...any) {
		for i := 0; i < len(pairs); i += 2 {
			m := metrics.Of(r.Section).Find(pairs[i].(string))
			if v, ok := pairs[i+1].(string); ok {
				r.SetText(m, v)
			} else {
				r.SetUint(m, uint64(pairs[i+1].(int)))
			}
		}
	}
	for range 3 {
		s.Append(snapshot.NewRow(metrics.Label))
	}
	s.Append(snapshot.NewRow(metrics.Epoch))
	set(s.Rows(metrics.Epoch)[0], "epoch_id", 0, "label_id", 0)
	set(s.Global(), "current_epoch", 0)
	set(s.Rows(metrics.Label)[0], "label", "(unlabeled)", "label_id", 0, "live_objects", objects, "live_bytes", 64*objects)
	set(s.Rows(metrics.Label)[1], "label", "GET", "label_id", 1, "outside_bytes", byGet)
	set(s.Rows(metrics.Label)[2], "label", "POST", "label_id", 2, "outside_bytes", byPost)
	return s
}

// What is kept outside of scopes is told with the labels that made it since the gate began.
func TestGateNamesMakers(t *testing.T) {
	g := gateState{}
	for round, s := range []*snapshot.Snapshot{keeping(100, 9000, 100), keeping(100, 9000, 400), keeping(101, 9100, 1000)} {
		now, err := g.read(s)
		if err != nil {
			t.Fatal(err)
		}
		worst := g.compare(now, uint(round))
		if (worst != nil) != (round == 2) {
			t.Fatalf("round %d: %+v", round, worst)
		}
		if worst != nil && (worst.Label != "(unlabeled)" || worst.Objects != 101 || worst.Makers != `made outside of scopes, most by "POST" (90 %), "GET" (10 %)`) {
			t.Errorf("%+v", worst)
		}
	}
}
