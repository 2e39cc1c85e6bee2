package doctor

// Leaks and reclamation.

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/units"
)

func sortDescending(rows []*snapshot.Row, key string) {
	slices.SortStableFunc(rows, func(a, b *snapshot.Row) int { return cmp.Compare(b.U(key), a.U(key)) })
}

// Leak is what ended phases with the same label hold.
type Leak struct {
	Label                    string
	Phases, Objects, Bytes   uint64
	Age                      uint64 // ns, of the oldest
	Old                      uint64 // phases of the leak age or more, at most
	Worst                    []Phase
	Unclosed, Empty, Entered uint64 // of the phases that have a row: never closed, their empty slabs, references
	old                      bool
}

// Phase is one of those that hold most.
type Phase struct{ Era, Bytes, Objects, Age uint64 }

const domainBit = 1 << 31 // of an epoch id: a domain's own

// Leaks by label, as the labels tell them: the old ones first, then by size. Phases have rows only as far as there is
// room; they add what a label cannot tell, and judge nothing. Ages are of now: what drained when the figures were taken
// drains still, as far as anybody knows.
func Leaks(snap *snapshot.Snapshot, leakSeconds uint64) []*Leak {
	var list []*Leak
	by := map[uint64]*Leak{}
	limit, since := uint64(math.MaxUint64), sinceTaken(snap)
	if leakSeconds <= limit/1e9 {
		limit = leakSeconds * 1e9
	}
	for _, r := range snap.Rows(metrics.Label) {
		l := &Leak{Label: r.S("label"), Phases: r.U("draining_phases"), Objects: r.U("draining_objects"), Bytes: r.U("draining_bytes"),
			Age: snapshot.Add(r.U("oldest_draining_ns"), since), Worst: worst(r, since)}
		if r.Tells("unexpected_draining_objects") { // a library that knows what is expected of a label
			l.Phases, l.Objects = r.U("unexpected_draining_phases"), r.U("unexpected_draining_objects")
			l.Bytes, l.Age = r.U("unexpected_draining_bytes"), snapshot.Add(r.U("oldest_unexpected_ns"), since)
		}
		if l.Objects == 0 {
			continue
		}
		l.old = l.Age >= limit
		l.Old = min(olderThan(r, limit-min(limit, since)), l.Phases)
		by[r.U("label_id")] = l
		list = append(list, l)
	}
	for _, p := range snap.Rows(metrics.Phase) {
		if l := by[p.U("label_id")]; l != nil && snapshot.StateName(p.U("state")) == "CLOSING" && p.U("live_objects") != 0 {
			l.add(p)
		}
	}
	slices.SortStableFunc(list, func(a, b *Leak) int {
		if a.old != b.old {
			if a.old {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Objects, a.Objects))
	})
	return list
}

// told says whether the labels tell what leaks: there are some, and each does.
func told(snap *snapshot.Snapshot) bool {
	rows := snap.Rows(metrics.Label)
	for _, r := range rows {
		if !r.Tells("draining_objects") || !r.Tells("oldest_draining_ns") {
			return false
		}
	}
	return len(rows) != 0
}

// sinceTaken is how old the figures of a process are that was asked just now, in ns; of a document it is 0.
func sinceTaken(snap *snapshot.Snapshot) uint64 {
	if !snap.Aged {
		return 0
	}
	return uint64(max(0, snap.Age))
}

// olderThan counts draining phases of an age, those of the whole bucket that it falls into.
func olderThan(r *snapshot.Row, limit uint64) (n uint64) {
	m := metrics.Of(metrics.Label).Find("draining_age_ns")
	for i, count := range r.Array(m) {
		if i == m.Entries()-1 || m.BucketTop(i) >= limit {
			n = snapshot.Add(n, count)
		}
	}
	return n
}

func worst(r *snapshot.Row, since uint64) (list []Phase) {
	of := func(key string) []uint64 { return r.Array(metrics.Of(metrics.Label).Find(key)) }
	eras, bytes, objects, ages := of("worst_eras"), of("worst_bytes"), of("worst_objects"), of("worst_ages_ns")
	for k, era := range eras {
		if era != 0 && k < len(bytes) && k < len(objects) && k < len(ages) {
			list = append(list, Phase{era, bytes[k], objects[k], snapshot.Add(ages[k], since)})
		}
	}
	return list
}

func (l *Leak) add(p *snapshot.Row) {
	l.Empty = snapshot.Add(l.Empty, p.U("empty_slabs"))
	l.Entered = snapshot.Add(l.Entered, p.U("refcount"))
	// A close of a ring epoch that holds something measures the resident size, and leaves no slab empty.
	if p.U("empty_slabs") != 0 || (p.U("epoch_id")&domainBit == 0 && p.U("rss_before_close") == 0) {
		l.Unclosed++
	}
}

func leaks(s *Section, snap *snapshot.Snapshot, leakSeconds uint64) {
	var old, young []*Leak
	for _, l := range Leaks(snap, leakSeconds) {
		if l.old {
			old = append(old, l)
		} else {
			young = append(young, l)
		}
	}
	which := ""
	if leakSeconds != 0 {
		which = fmt.Sprintf(sayLeaksAge, leakSeconds)
	}
	switch {
	case !told(snap):
		s.say("Leaks: unknown: what was read does not tell for every label what ended phases hold.")
		s.action("", "read it with the tslab of the library's own version: whether something leaks cannot be said")
	case len(old) == 0 && sinceTaken(snap) >= uint64(Stale):
		s.say("Leaks: nothing leaked %s ago, when the process published last: no ended phase%s held an object.", units.Duration(snap.Age), which)
	case len(old) == 0:
		s.say(sayLeaksNone, which)
	default:
		objects, bytes, phases := sum(old)
		some := which
		if some != "" {
			some = " with some" + which
		}
		s.say("Leaks: %d objects, %s of slabs, in %d ended phases of %s%s.", objects, units.Bytes(bytes), phases, labelCount(len(old)), some)
	}
	for n, l := range old[:min(len(old), Rows)] {
		putLeak(s, n+1, l, which)
	}
	if rest := len(old) - Rows; rest > 0 {
		objects, bytes, _ := sum(old[Rows:])
		s.say("and %s with less: %d objects, %s of slabs.", labelCount(rest), objects, units.Bytes(bytes))
	}
	if len(young) != 0 {
		objects, bytes, _ := sum(young)
		s.say(sayLeaksYoung, objects, units.Bytes(bytes), units.Label(young[0].Label), "")
	}
	escapes(s, snap)
}

func expects(l *snapshot.Row) bool { return l.U("expected_objects")|l.U("expected_bytes") != 0 }

// escapes tells what has escaped from the phases of each label that lets something escape, and what of it drains now:
// labels of which something was said first, then the others.
func escapes(s *Section, snap *snapshot.Snapshot) {
	var list []*snapshot.Row
	for _, l := range snap.Rows(metrics.Label) {
		if l.U("objects_escaped")|l.U("draining_objects") != 0 {
			list = append(list, l)
		}
	}
	slices.SortStableFunc(list, func(a, b *snapshot.Row) int {
		switch {
		case expects(a) == expects(b):
			return 0
		case expects(a):
			return -1
		}
		return 1
	})
	for _, l := range list[:min(len(list), Rows)] {
		putEscapes(s, l, sinceTaken(snap))
	}
	if rest := len(list) - Rows; rest > 0 {
		s.say("and %s that let something escape.", labelCount(rest))
	}
}

func putEscapes(s *Section, l *snapshot.Row, since uint64) {
	label, expected := units.Label(l.S("label")), ""
	if expects(l) {
		expected = fmt.Sprintf(sayEscapesExpected, l.U("expected_objects"), units.Bytes(l.U("expected_bytes")))
	}
	escaped := units.Bytes(l.U("bytes_escaped"))
	if l.U("draining_objects") == 0 {
		s.say(sayEscapesOver, label, l.U("objects_escaped"), escaped, expected)
	} else {
		s.say(sayEscapes, label, l.U("objects_escaped"), escaped, l.U("draining_objects"), l.U("draining_phases"),
			snapshot.Add(l.U("oldest_draining_ns"), since)/1e9, expected)
	}
	if n := l.U("unexpected_phases"); n != 0 && expects(l) {
		s.action(label, sayUnexpected, label, n, l.U("phases_ended"), l.U("expected_objects"), units.Bytes(l.U("expected_bytes")))
	}
}

func labelCount(n int) string {
	if n == 1 {
		return "1 label"
	}
	return fmt.Sprintf("%d labels", n)
}

func sum(list []*Leak) (objects, bytes, phases uint64) {
	for _, l := range list {
		objects, bytes, phases = snapshot.Add(objects, l.Objects), snapshot.Add(bytes, l.Bytes), snapshot.Add(phases, l.Phases)
	}
	return
}

func putLeak(s *Section, n int, l *Leak, which string) {
	label, bytes, age := units.Label(l.Label), units.Bytes(l.Bytes), l.Age/1e9
	line := fmt.Sprintf("%d. %s: %d live in %d phases that hold %s; the oldest %d s", n, label, l.Objects, l.Phases, bytes, age)
	if which != "" && l.Old < l.Phases {
		line += fmt.Sprintf(", %d at most%s", l.Old, which)
	}
	era := uint64(0)
	for k, p := range l.Worst {
		if k == 0 {
			era = p.Era
			line += "; largest:"
		} else {
			line += ","
		}
		line += fmt.Sprintf(" era %d (%s in %d objects, %d s)", p.Era, units.Bytes(p.Bytes), p.Objects, p.Age/1e9)
	}
	s.say("%s", line)
	switch {
	case l.Entered != 0:
		s.action(label, sayLeakEntered, label, l.Objects, "", bytes, age, l.Entered, "its phases")
	case l.Unclosed != 0:
		s.action(label, sayLeakUnclosed, label, l.Objects, "", bytes, age, era, l.Empty)
	default:
		s.action(label, sayLeak, label, l.Objects, "", bytes, age, era)
	}
}

// ---- reclamation ----

func reclamation(s *Section, snap *snapshot.Snapshot) {
	g := snap.Global()
	var closes []*snapshot.Row
	kept := 0
	for _, e := range snap.Rows(metrics.Close) {
		if e.U("rss_before_close") == 0 { // a domain's: not measured
			continue
		}
		closes = append(closes, e)
		if wasKept(e) {
			kept++
		}
	}
	sortDescending(closes, "closed_ns")
	end := sayClosesNone
	if len(closes) != 0 {
		end = sayClosesSome
	}
	s.say(sayReclamation, g.U("total_madvise_calls"),
		units.Bytes(g.U("total_madvise_bytes")), g.U("total_madvise_failures"), len(closes), end)
	for _, e := range closes[:min(len(closes), Closes)] {
		putClose(s, e)
	}
	s.say(sayWarm, units.Bytes(g.U("warm_bytes")),
		units.Bytes(g.U("warm_budget_bytes")), units.Bytes(g.U("warm_regretted_bytes")))
	if kept != 0 {
		s.action("", sayKept+"; with purge_policy 1 (MADV_FREE) the kernel may keep pages until it is short of memory", kept)
	}
	if n := g.U("total_madvise_failures"); n != 0 {
		s.action("", sayMadviseFailed, n)
	}
}

// fell is what the close lowered the resident size by, and whether it did.
func fell(e *snapshot.Row) (uint64, bool) {
	before, after := e.U("rss_before_close"), e.U("rss_after_close")
	if after > before {
		return after - before, false
	}
	return before - after, true
}

func wasKept(e *snapshot.Row) bool {
	by, down := fell(e)
	asked := e.U("bytes_madvised")
	return asked >= KeptMinBytes && (!down || by < asked/KeptShare)
}

func putClose(s *Section, e *snapshot.Row) {
	by, down := fell(e)
	way, kept := sayCloseRose, ""
	if down {
		way = sayCloseFell
	}
	if wasKept(e) {
		kept = sayCloseKept
	}
	s.say(sayCloseOf+sayClose, units.Label(e.S("label")), e.U("epoch_era"),
		units.Bytes(e.U("bytes_madvised")), units.Bytes(e.U("rss_before_close")), units.Bytes(e.U("rss_after_close")), way,
		units.Bytes(by), kept)
}
