// Package diff compares two snapshots and says which differences are regressions. What counts as one is the table
// below; `tslab diff --help` prints it.
package diff

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"temporal-slab/tslab/internal/doctor"
	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/units"
)

// Limits are the thresholds, as flags.
type Limits struct {
	Growth     float64 // percent
	LeastBytes uint64
	Points     float64 // percentage points
	TimeGrowth float64 // percent
}

// Defaults of the flags.
var Defaults = Limits{Growth: 10, LeastBytes: 1 << 20, Points: 5, TimeGrowth: 25}

// Below these a share or mean is chance.
const (
	leastEvents  = 1000 // allocations, slabs closed, locks
	leastSamples = 100
)

type kind int

const (
	memory kind = iota // regressed: grew by more than Growth and by more than LeastBytes
	live               // likewise, from a sixteenth of LeastBytes: counted to the object
	events             // grew by more than Growth; from 0: at all
	share              // rose by more than Points
	yield              // fell by more than Points
	timing             // grew by more than TimeGrowth
)

var kindWords = [...]string{
	memory: "grew by more than --growth percent and by more than --least-bytes",
	live:   "grew by more than --growth percent and by more than a sixteenth of --least-bytes",
	events: "grew by more than --growth percent, or from 0",
	share:  "rose by more than --points percentage points",
	yield:  "fell by more than --points percentage points",
	timing: "grew by more than --time-growth percent",
}

type rule struct {
	name, what string
	kind       kind
	unit       metrics.Unit
	value      func(*snapshot.Snapshot) (float64, bool)
}

func global(key string) func(*snapshot.Snapshot) (float64, bool) {
	return func(s *snapshot.Snapshot) (float64, bool) { return s.Global().F(key), s.Global().Tells(key) }
}

// ratio in percent; unknown below so many events.
func ratio(part, whole uint64) (float64, bool) {
	if whole < leastEvents {
		return 0, false
	}
	return 100 * min(1, float64(part)/float64(whole)), true
}

var rules = []rule{
	{"committed_bytes", "memory of slabs and large objects", memory, metrics.Bytes, global("committed_bytes")},
	{"live_bytes", "memory in use", live, metrics.Bytes, global("live_bytes")},
	{"rss_bytes_current", "resident memory of the process", memory, metrics.Bytes, global("rss_bytes_current")},
	{"metadata_bytes", "bookkeeping", memory, metrics.Bytes, global("metadata_bytes")},
	{"leaked_bytes", "memory of slabs that ended phases hold because objects in them are live", memory, metrics.Bytes, ofLabels("draining_bytes")},
	{"leaked_objects", "such objects (shown, but never a regression by themselves)", -1, metrics.Count, ofLabels("draining_objects")},
	{"leaking_phases", "such phases (shown, but never a regression by themselves)", -1, metrics.Count, ofLabels("draining_phases")},
	{"open_bytes", "live objects in open phases (shown, but never a regression by themselves)", -1, metrics.Bytes, ofLabels("open_bytes")},
	{"outside_bytes", "made outside of scopes (shown, but never a regression by itself)", -1, metrics.Bytes, ofLabels("outside_bytes")},
	{"slow_path_percent", "allocations that left the fast path (if at least 1000 allocations)", share, metrics.Percent, slowPercent},
	{"lock_wait_percent", "lock acquisitions that had to wait (if at least 1000 acquisitions)", share, metrics.Percent, lockPercent},
	{"drainability_percent", "slabs that ends of phases took back at once (if at least 1000 slabs)", yield, metrics.Percent, drainPercent},
	{"alloc_cpu_ns", "mean processor time of a sampled allocation (if at least 100 samples)", timing, metrics.Nanoseconds, allocCPU},
	{"madvise_failures", "calls in which the kernel refused to take back memory", events, metrics.Count, global("total_madvise_failures")},
}

// ofLabels adds up what the labels tell, of all phases, whichever of them have a row.
func ofLabels(key string) func(*snapshot.Snapshot) (float64, bool) {
	return func(s *snapshot.Snapshot) (float64, bool) {
		rows := s.Rows(metrics.Label)
		return float64(s.Total(metrics.Label, key)), len(rows) != 0 && rows[0].Tells(key)
	}
}

// slowPercent counts what an ended phase has refused among the allocations: it left the fast path.
func slowPercent(s *snapshot.Snapshot) (float64, bool) {
	return ratio(s.Global().U("total_slow_path_hits"), snapshot.Add(s.Total(metrics.Label, "objects_allocated"), s.Global().U("total_slow_epoch_closed")))
}

func lockPercent(s *snapshot.Snapshot) (float64, bool) {
	fast, contended := doctor.Locks(s)
	return ratio(contended, snapshot.Add(fast, contended))
}

func drainPercent(s *snapshot.Snapshot) (float64, bool) {
	closed, pinned := s.Total(metrics.Label, "closed_slabs"), s.Total(metrics.Label, "pinned_slabs")
	if pinned > closed {
		return 0, false
	}
	return ratio(closed-pinned, closed)
}

func allocCPU(s *snapshot.Snapshot) (float64, bool) {
	r := s.One(metrics.Sampling)
	return r.F("avg_cpu_ns"), r.U("samples") >= leastSamples
}

// Entry is one figure of both.
type Entry struct {
	Name      string
	Unit      metrics.Unit
	A, B      float64
	Known     bool // in both
	Regressed bool
	Why       string
}

// Compare makes every entry: those of the rules, each cause of refusals, and labels whose memory grew too much.
func Compare(a, b *snapshot.Snapshot, l Limits) []Entry {
	var list []Entry
	for _, r := range rules {
		va, oka := r.value(a)
		vb, okb := r.value(b)
		list = append(list, l.entry(r.name, r.kind, r.unit, va, vb, oka && okb))
	}
	for _, m := range metrics.Of(metrics.Refusal).Metrics {
		if m.Kind != metrics.Counter {
			continue
		}
		va, vb := a.One(metrics.Refusal).Float(m), b.One(metrics.Refusal).Float(m)
		k := events
		if m.Key == "retired_slabs" {
			k = -1 // does no harm
		}
		if va != 0 || vb != 0 {
			list = append(list, l.entry("refusals."+m.Key, k, metrics.Count, va, vb, true))
		}
	}
	return append(list, l.labels(a, b)...)
}

// labels: those that a memory regression is found in.
func (l Limits) labels(a, b *snapshot.Snapshot) []Entry {
	var list []Entry
	for _, of := range []struct {
		key  string
		kind kind
	}{{"committed_bytes", memory}, {"draining_bytes", memory}, {"live_bytes", live}} {
		before, _ := byLabel(a, of.key)
		after, order := byLabel(b, of.key)
		for _, label := range order {
			was, known := before[label]
			if !known && a.Left(metrics.Label) != 0 { // it was among the rest
				continue
			}
			e := l.entry("label "+units.Label(label)+" "+of.key, of.kind, metrics.Bytes, was, after[label], true)
			if e.Regressed && of.key == "live_bytes" {
				e.Why += MadeBy(a, b, label)
			}
			if e.Regressed {
				list = append(list, e)
			}
		}
	}
	return list
}

// MadeBy names the labels that have made most outside of scopes between the two, where the ring keeps what is live of a label.
func MadeBy(a, b *snapshot.Snapshot, label string) string {
	if !hasRing(b, label) {
		return ""
	}
	type maker struct {
		label string
		more  uint64
	}
	before := map[string]uint64{}
	for _, r := range a.Rows(metrics.Label) {
		before[r.S("label")] = snapshot.Add(before[r.S("label")], r.U("outside_bytes"))
	}
	var list []maker
	var sum uint64
	for _, r := range b.Rows(metrics.Label) {
		n := r.U("outside_bytes")
		if was := before[r.S("label")]; was <= n {
			n -= was // of another run: what it made from its start
		}
		if n != 0 {
			list, sum = append(list, maker{r.S("label"), n}), snapshot.Add(sum, n)
		}
	}
	slices.SortStableFunc(list, func(x, y maker) int { return cmp.Compare(y.more, x.more) })
	var words []string
	for _, m := range list[:min(len(list), doctor.MostMakers)] {
		words = append(words, fmt.Sprintf("%s (%.0f %%)", units.Label(m.label), 100*float64(m.more)/float64(sum)))
	}
	if len(words) == 0 {
		return ""
	}
	return "; made outside of scopes, most by " + strings.Join(words, ", ")
}

// hasRing says whether an epoch of the ring holds what is live of the label.
func hasRing(s *snapshot.Snapshot, label string) bool {
	for _, r := range s.Rows(metrics.Label) {
		if r.S("label") == label && doctor.HasRing(s, r) {
			return true
		}
	}
	return false
}

// byLabel adds up the labels of all allocators, without those that have no row of their own.
func byLabel(s *snapshot.Snapshot, key string) (sums map[string]float64, order []string) {
	sums = map[string]float64{}
	for _, r := range s.Rows(metrics.Label) {
		if s.IsRest(r) {
			continue
		}
		label := r.S("label")
		if _, seen := sums[label]; !seen {
			order = append(order, label)
		}
		sums[label] += r.F(key)
	}
	return sums, order
}

func (l Limits) entry(name string, k kind, unit metrics.Unit, a, b float64, known bool) Entry {
	e := Entry{Name: name, Unit: unit, A: a, B: b, Known: known}
	if !known || k < 0 {
		return e
	}
	grew := growth(a, b)
	switch k {
	case memory:
		e.Regressed = grew > l.Growth && b-a > float64(l.LeastBytes)
	case live:
		e.Regressed = grew > l.Growth && b-a > float64(l.LeastBytes)/16
	case events:
		e.Regressed = b > a && grew > l.Growth
	case share:
		e.Regressed = b-a > l.Points
	case yield:
		e.Regressed = a-b > l.Points
	case timing:
		e.Regressed = grew > l.TimeGrowth
	}
	if e.Regressed {
		e.Why = l.why(k)
	}
	return e
}

// why says which limit a regression has exceeded, as kindWords does with the flags' names.
func (l Limits) why(k kind) string {
	switch k {
	case memory:
		return fmt.Sprintf("grew by more than %g %% and by more than %s", l.Growth, units.Bytes(l.LeastBytes))
	case live:
		return fmt.Sprintf("grew by more than %g %% and by more than %s", l.Growth, units.Bytes(l.LeastBytes/16))
	case events:
		return fmt.Sprintf("grew by more than %g %%, or from 0", l.Growth)
	case share:
		return fmt.Sprintf("rose by more than %g percentage points", l.Points)
	case yield:
		return fmt.Sprintf("fell by more than %g percentage points", l.Points)
	}
	return fmt.Sprintf("grew by more than %g %%", l.TimeGrowth)
}

// growth in percent; without end from 0.
func growth(a, b float64) float64 {
	switch {
	case b <= a:
		return 0
	case a == 0:
		return math.Inf(1)
	}
	return 100 * (b - a) / a
}

// Change of an entry in words.
func (e *Entry) Change() string {
	switch {
	case !e.Known:
		return "-"
	case e.Unit == metrics.Percent:
		return fmt.Sprintf("%+.1f points", e.B-e.A)
	case e.A == e.B:
		return "="
	case e.A == 0:
		return "new"
	}
	pct := 100 * (e.B - e.A) / e.A
	if math.Abs(pct) > 9999 {
		return fmt.Sprintf("x%.3g", e.B/e.A)
	}
	return fmt.Sprintf("%+.1f %%", pct)
}

// Explain lists the rules, for the help.
func Explain() string {
	var b strings.Builder
	for _, r := range rules {
		if r.kind >= 0 {
			fmt.Fprintf(&b, "  %-22s %s\n  %-22s   %s\n", r.name, r.what, "", kindWords[r.kind])
		}
	}
	fmt.Fprintf(&b, "  %-22s refused calls by cause\n  %-22s   %s\n", "refusals.CAUSE", "", kindWords[events])
	fmt.Fprintf(&b, "  %-22s memory of a label, the part that its ended phases hold, and its live memory\n  %-22s   %s\n", "label \"L\"", "", kindWords[memory])
	return strings.TrimRight(b.String(), "\n")
}
