package doctor

// Leaks and reclamation.

import (
	"cmp"
	"fmt"
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
	Label                        string
	Objects, Bytes, Slabs, Empty uint64
	Phases, Unclosed, References uint64
	AgeSeconds, EpochID, Era     uint64 // of the oldest
	old                          bool
}

const domainBit = 1 << 31 // of an epoch id: a domain's own

// Leaks by label, the old ones first, then by size.
func Leaks(snap *snapshot.Snapshot, leakSeconds uint64) []*Leak {
	type key struct {
		label string
		old   bool
	}
	by := map[key]*Leak{}
	var list []*Leak
	for _, p := range snap.Rows(metrics.Phase) {
		if snapshot.StateName(p.U("state")) != "CLOSING" || p.U("live_objects") == 0 {
			continue
		}
		age := p.U("age_ns") / 1e9
		k := key{p.S("label"), age >= leakSeconds}
		l := by[k]
		if l == nil {
			l = &Leak{Label: k.label, old: k.old, AgeSeconds: age, EpochID: p.U("epoch_id"), Era: p.U("epoch_era")}
			by[k] = l
			list = append(list, l)
		}
		l.add(p, age)
	}
	slices.SortStableFunc(list, func(a, b *Leak) int {
		if a.old != b.old {
			if a.old {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Objects, a.Objects), cmp.Compare(a.Era, b.Era))
	})
	return list
}

func (l *Leak) add(p *snapshot.Row, age uint64) {
	l.Objects = snapshot.Add(l.Objects, p.U("live_objects"))
	l.Bytes = snapshot.Add(l.Bytes, p.U("committed_bytes"))
	l.Slabs = snapshot.Add(l.Slabs, p.U("slabs"))
	l.Empty = snapshot.Add(l.Empty, p.U("empty_slabs"))
	l.References = snapshot.Add(l.References, p.U("refcount"))
	l.Phases++
	// A close of a ring epoch that holds something measures the resident size, and leaves no slab empty.
	if p.U("empty_slabs") != 0 || (p.U("epoch_id")&domainBit == 0 && p.U("rss_before_close") == 0) {
		l.Unclosed++
	}
	if age > l.AgeSeconds || (age == l.AgeSeconds && p.U("epoch_era") < l.Era) {
		l.AgeSeconds, l.EpochID, l.Era = age, p.U("epoch_id"), p.U("epoch_era")
	}
}

func leaks(s *Section, snap *snapshot.Snapshot, leakSeconds uint64) {
	list := Leaks(snap, leakSeconds)
	var old, young []*Leak
	for _, l := range list {
		if l.old {
			old = append(old, l)
		} else {
			young = append(young, l)
		}
	}
	which := ""
	if leakSeconds != 0 {
		which = fmt.Sprintf(" of %d s or more", leakSeconds)
	}
	if len(old) == 0 {
		s.say("Leaks: nothing leaks: no ended phase%s holds an object.", which)
	} else {
		objects, bytes := sum(old)
		s.say("Leaks: %d objects, %s of slabs, in ended phases%s.", objects, units.Bytes(bytes), which)
	}
	for n, l := range old[:min(len(old), Thresholds.Rows)] {
		putLeak(s, n+1, l)
	}
	if rest := len(old) - Thresholds.Rows; rest > 0 {
		s.say("and %d smaller ones.", rest)
	}
	if len(young) != 0 {
		objects, bytes := sum(young)
		s.say("Too young to judge: %d objects, %s of slabs, most of it %s.", objects, units.Bytes(bytes), units.Label(young[0].Label))
	}
	if n := snap.LeftOut[metrics.Phase]; n != 0 {
		s.say("%d younger phases were left out of the numbers that could be read.", n)
	}
}

func sum(list []*Leak) (objects, bytes uint64) {
	for _, l := range list {
		objects, bytes = snapshot.Add(objects, l.Objects), snapshot.Add(bytes, l.Bytes)
	}
	return
}

func putLeak(s *Section, n int, l *Leak) {
	label, bytes := units.Label(l.Label), units.Bytes(l.Bytes)
	s.say("%d. %s: %d live in %d slabs of %s; %d phases, the oldest %d s, epoch %d, era %d; refcount %d", n, label,
		l.Objects, l.Slabs, bytes, l.Phases, l.AgeSeconds, l.EpochID, l.Era, l.References)
	switch {
	case l.References != 0:
		s.action(label, "%s holds %d objects (%s) after %d s, and %d references to it are open: look for the missing "+
			"epoch_domain_exit or slab_epoch_dec_refcount", label, l.Objects, bytes, l.AgeSeconds, l.References)
	case l.Unclosed != 0:
		s.action(label, "%s was advanced past and never closed, and holds %d objects (%s) after %d s: "+
			"close it by its era (%d) and free the rest; %d slabs of it are empty", label, l.Objects, bytes, l.AgeSeconds,
			l.Era, l.Empty)
	default:
		s.action(label, "%s leaks %d objects (%s), for up to %d s: slab_epoch_walk_era(a, %d, ...) tells "+
			"addresses; free them where the phase ends, or release the phase if nobody needs them", label, l.Objects,
			bytes, l.AgeSeconds, l.Era)
	}
}

// ---- reclamation ----

func reclamation(s *Section, snap *snapshot.Snapshot) {
	g := snap.Global()
	var closes []*snapshot.Row
	kept := 0
	for _, e := range snap.Rows(metrics.Epoch) {
		if e.U("rss_before_close") == 0 {
			continue
		}
		closes = append(closes, e)
		if wasKept(e) {
			kept++
		}
	}
	sortDescending(closes, "epoch_era")
	end := "."
	if len(closes) != 0 {
		end = ", latest era first:"
	}
	s.say("Reclamation: %d calls gave %s to the system, %d failed; %d closes on record%s", g.U("total_madvise_calls"),
		units.Bytes(g.U("total_madvise_bytes")), g.U("total_madvise_failures"), len(closes), end)
	for _, e := range closes[:min(len(closes), Thresholds.ClosesShown)] {
		putClose(s, e)
	}
	if kept != 0 {
		s.action("", "%d closes gave pages back and RSS stayed: look at transparent huge pages (AnonHugePages in "+
			"/proc/PID/smaps), at the memory cgroup (memory.stat), at locked memory (mlockall), and at "+
			"other threads that allocated meanwhile; with purge_policy 1 (MADV_FREE) the kernel may keep pages until it is "+
			"short of memory", kept)
	}
	if n := g.U("total_madvise_failures"); n != 0 {
		s.action("", "%d of the calls failed: a seccomp filter, locked memory or a kernel limit (vm.max_map_count) stands in the way", n)
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
	asked := e.U("madvise_bytes")
	return asked >= Thresholds.KeptMinBytes && (!down || by < asked/Thresholds.KeptShare)
}

func putClose(s *Section, e *snapshot.Row) {
	by, down := fell(e)
	way, kept := "rose by", ""
	if down {
		way = "fell by"
	}
	if wasKept(e) {
		kept = " - the kernel kept the pages"
	}
	s.say("%s, era %d: %s given to the system; RSS %s -> %s (%s %s)%s", units.Label(e.S("label")), e.U("epoch_era"),
		units.Bytes(e.U("madvise_bytes")), units.Bytes(e.U("rss_before_close")), units.Bytes(e.U("rss_after_close")), way,
		units.Bytes(by), kept)
}
