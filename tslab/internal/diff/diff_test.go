package diff_test

import (
	"strings"
	"testing"

	"temporal-slab/tslab/internal/diff"
	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
)

func set(r *snapshot.Row, pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		m := metrics.Of(r.Section).Find(pairs[i].(string))
		if v, ok := pairs[i+1].(string); ok {
			r.SetText(m, v)
		} else {
			r.SetUint(m, uint64(pairs[i+1].(int)))
		}
	}
}

// server keeps one object a request in the ring; nothing else of it changes.
func server(live, outside int) *snapshot.Snapshot {
	s := snapshot.New()
	for range 3 {
		s.Append(snapshot.NewRow(metrics.Label))
	}
	s.Append(snapshot.NewRow(metrics.Epoch))
	set(s.Rows(metrics.Epoch)[0], "epoch_id", 0, "label_id", 0)
	set(s.Global(), "current_epoch", 0, "live_bytes", live, "committed_bytes", 8<<20)
	set(s.Rows(metrics.Label)[0], "label", "(unlabeled)", "label_id", 0, "live_bytes", live)
	set(s.Rows(metrics.Label)[1], "label", "GET", "label_id", 1, "outside_bytes", outside)
	set(s.Rows(metrics.Label)[2], "label", "POST", "label_id", 2, "outside_bytes", outside/4)
	return s
}

func regressed(a, b *snapshot.Snapshot, l diff.Limits) map[string]string {
	found := map[string]string{}
	for _, e := range diff.Compare(a, b, l) {
		if e.Regressed {
			found[e.Name] = e.Why
		}
	}
	return found
}

func TestGrowthOfWhatLivesRegresses(t *testing.T) {
	before, after := server(1<<20, 80000), server(3<<20, 240000)
	found := regressed(before, after, diff.Defaults)
	if len(found) != 2 || found["live_bytes"] == "" {
		t.Errorf("+200 %% of what lives: %v", found)
	}
	if why := found[`label "(unlabeled)" live_bytes`]; !strings.Contains(why, `made outside of scopes, most by "GET" (80 %), "POST" (20 %)`) {
		t.Errorf("it names nobody: %q", why)
	}
	for _, c := range []struct {
		name string
		a, b *snapshot.Snapshot
		l    diff.Limits
	}{
		{"less", after, before, diff.Defaults},
		{"the same", after, after, diff.Defaults},
		{"within the tolerance", server(10<<20, 0), server(11<<20, 0), diff.Defaults},
		{"a few objects", server(1000, 0), server(1000+diffLeast, 0), diff.Defaults},
		{"allowed", before, after, diff.Limits{Growth: 200, LeastBytes: 1, Points: 5, TimeGrowth: 25}},
	} {
		if found := regressed(c.a, c.b, c.l); len(found) != 0 {
			t.Errorf("%s: %v", c.name, found)
		}
	}
}

const diffLeast = 1 << 20 / 16

// What is refused by ended phases is slow, and none of the allocations that were made.
func TestSharesHaveABound(t *testing.T) {
	s := server(1, 1)
	set(s.Global(), "total_slow_path_hits", 50_000, "total_slow_epoch_closed", 40_000)
	set(s.Rows(metrics.Label)[0], "objects_allocated", 8_000)
	for _, e := range diff.Compare(s, s, diff.Defaults) {
		if e.Unit == metrics.Percent && e.Known && (e.A < 0 || e.A > 100) {
			t.Errorf("%s is %g %%", e.Name, e.A)
		}
	}
}
