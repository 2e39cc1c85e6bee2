package doctor

// Growth: what keeps more and more, and which limit is near.

import (
	"cmp"
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
	paces(s, g, idle)
	limits(s, snap, idle)
	makers, objects, bytes := Makers(snap)
	for _, l := range snap.Rows(metrics.Label) {
		if !idle && grows(l) {
			growing(s, snap, l, makers)
		}
	}
	openPhases(s, snap)
	if objects != 0 {
		s.say(sayOutside, objects, units.Bytes(bytes), makers)
	}
}

// paces says how live and committed bytes have changed lately, whether that stays or not.
func paces(s *Section, g *snapshot.Row, idle bool) {
	if idle || g.U("pace_10s_ns") == 0 || g.U("pace_100s_ns") == 0 {
		return
	}
	word := func(key string) string { return units.Signed(g.F(key)) }
	s.say(sayPace, word("live_pace_10s"), g.U("pace_10s_ns")/1e9, word("live_pace_100s"), g.U("pace_100s_ns")/1e9, word("live_pace_ever"),
		word("committed_pace_10s"), word("committed_pace_100s"), word("committed_pace_ever"))
}

// OpenWithMuch are the open phases that hold much, the largest first.
func OpenWithMuch(snap *snapshot.Snapshot) []*snapshot.Row {
	var rows []*snapshot.Row
	for _, p := range snap.Rows(metrics.Phase) {
		bytes := p.U("committed_bytes")
		if p.U("state") == 0 && bytes >= OpenLeast && bytes >= snap.Global().U("committed_bytes")/100*OpenShare {
			rows = append(rows, p)
		}
	}
	slices.SortStableFunc(rows, func(a, b *snapshot.Row) int {
		return cmp.Or(cmp.Compare(b.U("committed_bytes"), a.U("committed_bytes")), cmp.Compare(a.U("epoch_era"), b.U("epoch_era")))
	})
	return rows[:min(len(rows), OpenShown)]
}

func openPhases(s *Section, snap *snapshot.Snapshot) {
	for _, p := range OpenWithMuch(snap) {
		s.say(sayOpenMuch, units.Label(p.S("label")), p.U("epoch_era"), units.Bytes(p.U("committed_bytes")), p.U("age_ns")/1e9,
			units.Bytes(p.U("live_bytes")), p.U("live_objects"))
	}
}

// left says what is left of the limit that is reached first, as the end of a sentence; "" where none is near.
func left(g, l *snapshot.Row) string {
	of, name := g, units.Text(g.S("limit_name"))
	if ns := l.U("limit_ns"); ns != 0 && (g.U("limit_ns") == 0 || ns < g.U("limit_ns")) {
		of, name = l, sayGrowsBudget
	}
	if of.U("limit_ns") == 0 || of.U("limit_ns")/1e9 >= LeftTold {
		return ""
	}
	room := of.U("limit_bytes") - min(of.U("limit_bytes"), of.U("limit_used_bytes"))
	return fmt.Sprintf(sayGrowsLeft, units.Bytes(room), name, of.U("limit_ns")/1e9)
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
	s.action(label, sayGrows, label, units.Bytes(pace(l)), units.Bytes(l.U("live_bytes")), l.U("phases_open"), l.U("draining_phases"),
		units.Bytes(l.U("growth_bytes")), l.U("growth_ns")/1e9, left(snap.Global(), l), outside)
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
