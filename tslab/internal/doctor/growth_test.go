package doctor_test

import (
	"strings"
	"testing"
	"time"

	"temporal-slab/tslab/internal/doctor"
	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
)

// growing is a document of an allocator whose ring grows by what two labels make outside.
func growing() *snapshot.Snapshot {
	s := told()
	for range 2 {
		s.Append(snapshot.NewRow(metrics.Label))
	}
	s.Append(snapshot.NewRow(metrics.Epoch))
	change(s, metrics.Label, 0, "label", "(unlabeled)", "label_id", 0, "live_bytes", 30<<20, "growth_bytes", 10<<20, "growth_ns", 20_000_000_000, "growth_per_second", 512<<10, "phases_open", 16)
	change(s, metrics.Label, 1, "label", "GET", "label_id", 1, "outside_bytes", 75, "outside_objects", 1, "draining_objects", 0, "oldest_draining_ns", 0)
	change(s, metrics.Label, 2, "label", "POST", "label_id", 2, "outside_bytes", 25, "outside_objects", 1, "draining_objects", 0, "oldest_draining_ns", 0)
	change(s, metrics.Epoch, 0, "epoch_id", 3, "label_id", 0)
	return change(s, metrics.Global, 0, "current_epoch", 3, "growth_bytes", 10<<20, "growth_ns", 20_000_000_000, "limit_name", "max_bytes",
		"limit_bytes", 64<<20, "limit_used_bytes", 32<<20)
}

// open is a document with one open phase.
func open(bytes int) *snapshot.Snapshot {
	s := growing()
	s.Append(snapshot.NewRow(metrics.Phase))
	return change(s, metrics.Phase, len(s.Rows(metrics.Phase))-1, "label", "session", "epoch_era", 7, "committed_bytes", bytes, "live_bytes", 6<<20, "live_objects", 11,
		"age_ns", 90_000_000_000)
}

func TestGrowth(t *testing.T) {
	names := `"GET" (75 %), "POST" (25 %)`
	for _, c := range []struct {
		name     string
		snap     *snapshot.Snapshot
		has, not string
	}{
		{"the makers", growing(), `"(unlabeled)" grows by 512.0 KiB a second: 30.0 MiB live in 16 open and 0 ended phases, 10.0 MiB more than 20 s ago; most bytes allocated outside of scopes come from ` + names, "is reached in"},
		{"another label's epoch", change(growing(), metrics.Epoch, 0, "label_id", 2), `"(unlabeled)" grows`, "outside of scopes come from"},
		{"little", change(growing(), metrics.Label, 0, "growth_bytes", doctor.GrowthLeast-1), "8. Growth: 10.0 MiB more", "ACTION"},
		{"a small part", change(growing(), metrics.Label, 0, "growth_bytes", 2<<20), "8. Growth", "ACTION"},
		{"a limit", change(growing(), metrics.Global, 0, "limit_ns", 90_000_000_000), "ACTION: max_bytes allows 64.0 MiB, and 32.0 MiB of it is in use: at this pace, the limit is reached in 90 s", ""},
		{"a far limit", change(growing(), metrics.Global, 0, "limit_ns", 3600_000_000_000), "Limit: max_bytes allows 64.0 MiB", "is reached in"},
		{"a budget", change(growing(), metrics.Label, 1, "limit_ns", 5_000_000_000, "limit_bytes", 1<<20), `ACTION: "GET": a hard budget allows 1.0 MiB`, ""},
		{"what is left", change(growing(), metrics.Global, 0, "limit_ns", 64_000_000_000), `10.0 MiB more than 20 s ago; 32.0 MiB are left of max_bytes, enough for 64 s; most bytes`, ""},
		{"what is left of a budget", change(change(growing(), metrics.Global, 0, "limit_ns", 64_000_000_000), metrics.Label, 0, "limit_ns", 5_000_000_000, "limit_bytes", 40<<20, "limit_used_bytes", 30<<20),
			`20 s ago; 10.0 MiB are left of its budget, enough for 5 s`, ""},
		{"paces", change(growing(), metrics.Global, 0, "pace_10s_ns", 12_000_000_000, "pace_100s_ns", 110_000_000_000, "live_pace_10s", 1<<20, "live_pace_100s", -2048, "committed_pace_ever", 3<<20),
			"Pace: live bytes +1.0 MiB a second over 12 s, -2.0 KiB over 110 s, 0 B since the start; committed bytes 0 B, 0 B and +3.0 MiB.", ""},
		{"no paces", change(growing(), metrics.Global, 0, "pace_10s_ns", 0), "8. Growth", "Pace:"},
		{"an open phase", open(8 << 20), `Open: "session", era 7, holds 8.0 MiB after 90 s, with 6.0 MiB live in 11 objects.`, ""},
		{"a small open phase", open(doctor.OpenLeast - 1), "8. Growth", "Open: "},
		{"of long ago", aged(change(growing(), metrics.Global, 0, "limit_ns", 90_000_000_000), time.Minute), "Nothing was published for 1m", "ACTION"},
		{"one reading", change(growing(), metrics.Global, 0, "growth_ns", 0), "8. Growth: unknown", ""},
		{"an older library", told(), "8. Growth: unknown: what was read does not tell.", "ACTION"},
		{"refused", change(change(growing(), metrics.Label, 2, "budget_refusals", 7), metrics.Refusal, 0, "over_budget", 9), `over_budget 9: allocations exceeded a hard budget or max_bytes; most under "POST" (7)`, ""},
	} {
		var b strings.Builder
		doctor.Examine(c.snap, 60).Write(&b, func(s string) string { return s })
		if !strings.Contains(b.String(), c.has) || c.not != "" && strings.Contains(b.String(), c.not) {
			t.Errorf("%s: not as it should be (%q, without %q):\n%s", c.name, c.has, c.not, b.String())
		}
	}
}
