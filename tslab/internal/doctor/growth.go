package doctor

// Growth: what keeps more and more, and which limit is near.

import (
	"fmt"
	"slices"
	"strings"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/units"
)

func growth(s *Section, snap *snapshot.Snapshot) {
	g := snap.Global()
	idle := sinceTaken(snap) >= uint64(Stale)
	switch {
	case !g.Tells("growth_ns"):
		s.say("Growth: unknown: what was read does not tell.")
	case g.U("growth_ns") == 0:
		s.say(sayGrowthUnknown)
	case g.U("growth_bytes") == 0:
		s.say(sayGrowthNone, g.U("growth_ns")/1e9)
	default:
		s.say(sayGrowth, units.Bytes(g.U("growth_bytes")), g.U("growth_ns")/1e9, units.Bytes(pace(g)))
	}
	if idle {
		s.say("Nothing was published for %s: what grew then does not grow now.", units.Duration(snap.Age))
	}
	limits(s, snap, idle)
	makers, objects, bytes := Makers(snap)
	for _, l := range snap.Rows(metrics.Label) {
		if !idle && grows(l) {
			growing(s, snap, l, makers)
		}
	}
	if objects != 0 {
		s.say(sayOutside, objects, units.Bytes(bytes), makers)
	}
}

func pace(r *snapshot.Row) uint64 { return uint64(max(0, min(r.F("growth_per_second"), 1e18))) }

func limits(s *Section, snap *snapshot.Snapshot, idle bool) {
	g := snap.Global()
	soon := func(r *snapshot.Row) bool { return !idle && r.U("limit_ns") != 0 && r.U("limit_ns")/1e9 < LimitSoon }
	switch {
	case soon(g):
		s.action(g.S("limit_name"), sayLimitSoon, units.Text(g.S("limit_name")), units.Bytes(g.U("limit_bytes")), units.Bytes(g.U("limit_used_bytes")),
			g.U("limit_ns")/1e9, mostGrowing(snap))
	case g.U("limit_bytes") != 0:
		s.say(sayLimit, units.Text(g.S("limit_name")), units.Bytes(g.U("limit_bytes")), units.Bytes(g.U("limit_used_bytes")))
	}
	for _, l := range snap.Rows(metrics.Label) {
		if soon(l) {
			label := units.Label(l.S("label"))
			s.action(label, sayBudgetSoon, label, units.Bytes(l.U("limit_bytes")), units.Bytes(l.U("limit_used_bytes")), l.U("limit_ns")/1e9)
		}
	}
}

// mostGrowing names the label that grows fastest, as the end of a sentence.
func mostGrowing(snap *snapshot.Snapshot) string {
	if l := FastestLabel(snap); l != nil {
		return fmt.Sprintf(sayLimitMost, units.Label(l.S("label")))
	}
	return ""
}

// FastestLabel is the row of the label that grows fastest; nil where none does.
func FastestLabel(snap *snapshot.Snapshot) *snapshot.Row {
	return labelWithMost(snap, "growth_per_second")
}

func grows(l *snapshot.Row) bool {
	more := l.U("growth_bytes")
	before := l.U("live_bytes") - min(more, l.U("live_bytes"))
	return more >= GrowthLeast && more >= before/100*GrowthShare
}

func growing(s *Section, snap *snapshot.Snapshot, l *snapshot.Row, makers string) {
	outside, label := "", units.Label(l.S("label"))
	if makers != "" && HasRing(snap, l) {
		outside = fmt.Sprintf(sayGrowsOutside, makers)
	}
	s.action(label, sayGrows, label, units.Bytes(l.U("live_bytes")), l.U("phases_open"), l.U("draining_phases"),
		units.Bytes(l.U("growth_bytes")), l.U("growth_ns")/1e9, outside)
}

// HasRing says whether the label has the ring's current epoch, where objects are that were made outside of scopes.
func HasRing(snap *snapshot.Snapshot, l *snapshot.Row) bool {
	for _, e := range snap.Rows(metrics.Epoch) {
		if e.U("epoch_id") == snap.Global().U("current_epoch") {
			return e.U("label_id") == l.U("label_id")
		}
	}
	return false
}

// Makers names the labels of which scopes have made most bytes outside, with their shares; and says how much was made so.
func Makers(snap *snapshot.Snapshot) (list string, objects, bytes uint64) {
	rows := slices.Clone(snap.Rows(metrics.Label))
	sortDescending(rows, "outside_bytes")
	objects, bytes = snap.Total(metrics.Label, "outside_objects"), snap.Total(metrics.Label, "outside_bytes")
	var words []string
	for _, l := range rows[:min(len(rows), MostMakers)] {
		if n := l.U("outside_bytes"); n != 0 {
			words = append(words, fmt.Sprintf(sayMaker, units.Label(l.S("label")), uint64(percent(n, bytes))))
		}
	}
	return strings.Join(words, ", "), objects, bytes
}
