// Package rates says how fast counters grow between two snapshots of one allocator, or that this cannot be said.
//
// Time is the growth of the allocator's own age, which no clock jump touches. It is trusted only where the wall clock
// agrees: when the two differ by more than a second and a tenth, somebody set the clock, the machine slept, or another
// process stands behind the same name. Then there are no rates for this interval, and the next one is sound again.
// A counter that fell has no rate.
package rates

import (
	"fmt"
	"math"
	"time"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/units"
)

const (
	leastSeconds = 0.001 // shorter intervals make rates of noise
	slackSeconds = 1.0
	slackShare   = 0.1
)

// Interval is what lies between two snapshots. Of a process with several allocators it has one of each, whose rates add
// up: each publishes at times of its own.
type Interval struct {
	From, To *snapshot.Snapshot
	Parts    []*Interval
	Seconds  float64 // 0 when nothing can be said
	Why      string  // then the reason
	rows     map[Identity]*snapshot.Row
	moved    bool // labels between those of the rest and those with a row
}

// Fresh is how long a publication stands for what happens now. Who takes or ends anything publishes once a second.
const Fresh = 3 * time.Second

// Series makes intervals of readings. Rates lie between distinct publications: two readings of the same one have nothing
// between them, and then the interval that led to it stands until it is too old to tell of now.
type Series struct {
	last *snapshot.Snapshot
	each map[uint64]*single // by allocator
}

// single is the series of one allocator.
type single struct{ from, to *snapshot.Snapshot }

// Next takes a reading.
func (s *Series) Next(snap *snapshot.Snapshot) *Interval {
	before, from := s.each, s.last
	s.last, s.each = snap, map[uint64]*single{}
	var parts []*Interval
	for _, p := range snap.Each() {
		one := before[p.Allocator()]
		if one == nil {
			one = &single{}
		}
		s.each[p.Allocator()] = one
		parts = append(parts, one.next(p))
	}
	if len(snap.Parts) == 0 {
		return parts[0]
	}
	i := &Interval{From: from, To: snap, Parts: parts, Why: parts[0].Why}
	for _, p := range parts {
		if p.Seconds > i.Seconds {
			i.Seconds, i.Why = p.Seconds, ""
		}
	}
	return i
}

func (s *single) next(snap *snapshot.Snapshot) *Interval {
	again := Same(s.to, snap)
	if !again {
		s.from = s.to
	}
	s.to = snap
	i := Between(s.from, snap)
	if !again {
		return i
	}
	if age, ok := snap.Old(); s.from == nil {
		i.Why = "no new numbers"
	} else if ok && age >= Fresh {
		i.Seconds, i.Why = 0, fmt.Sprintf("no new numbers for %s", units.Duration(age))
	}
	return i
}

// Same says whether two snapshots are of one publication; the first may be nil.
func Same(a, b *snapshot.Snapshot) bool {
	if a == nil {
		return false
	}
	x, y := a.Document(), b.Document()
	return x.U("pid") == y.U("pid") && x.U("uptime_ns") == y.U("uptime_ns") && x.U("timestamp_ns") == y.U("timestamp_ns")
}

// Between is the interval from one snapshot to the next; from may be nil.
func Between(from, to *snapshot.Snapshot) *Interval {
	i := &Interval{From: from, To: to}
	switch {
	case from == nil:
		i.Why = "first reading"
	default:
		i.Seconds, i.Why = elapsed(from.Document(), to.Document())
	}
	if i.Seconds != 0 {
		i.index()
	}
	return i
}

func elapsed(a, b *snapshot.Row) (float64, string) {
	if a.U("pid") != b.U("pid") {
		return 0, fmt.Sprintf("another process (pid %d, then %d)", a.U("pid"), b.U("pid"))
	}
	before, after := a.U("uptime_ns"), b.U("uptime_ns")
	switch {
	case after < before:
		return 0, "restarted: the allocator is younger than before"
	case after == before:
		return 0, "no new numbers"
	}
	up := float64(after-before) / 1e9
	wall := (float64(b.U("timestamp_ns")) - float64(a.U("timestamp_ns"))) / 1e9
	if math.Abs(wall-up) > slackSeconds+slackShare*up {
		return 0, "the clock jumped, the machine slept, or the process is another one"
	}
	if up < leastSeconds {
		return 0, "too short a time"
	}
	return up, ""
}

// Identity says which row of a list is which in two snapshots.
type Identity struct {
	section metrics.Section
	number  uint64
	text    string
}

// Identify is which row of a list it is.
func Identify(r *snapshot.Row) Identity {
	switch r.Section {
	case metrics.Class:
		return Identity{r.Section, r.U("class_index"), ""}
	case metrics.Epoch, metrics.Phase:
		return Identity{r.Section, r.U("epoch_era"), ""}
	case metrics.Label:
		return Identity{r.Section, r.U("label_id"), r.S("label")}
	}
	return Identity{section: r.Section}
}

func (i *Interval) index() {
	i.rows = map[Identity]*snapshot.Row{}
	for k := range metrics.Sections {
		for _, r := range i.From.Rows(k) {
			i.rows[Identify(r)] = r
		}
	}
	if i.From.Left(metrics.Label) != 0 || i.To.Left(metrics.Label) != 0 {
		i.moved = len(i.From.Rows(metrics.Label)) != len(i.To.Rows(metrics.Label))
		for _, r := range i.To.Rows(metrics.Label) {
			i.moved = i.moved || i.rows[Identify(r)] == nil
		}
	}
}

// part is the interval of the allocator that has a row.
func (i *Interval) part(r *snapshot.Row) *Interval {
	for _, p := range i.Parts {
		if p.To == i.To.Of(r) {
			return p
		}
	}
	return i
}

// Rate of a counter of a row of To; false when it cannot be said.
func (i *Interval) Rate(r *snapshot.Row, m *metrics.Metric) (float64, bool) {
	i = i.part(r)
	if i.moved && i.To.IsRest(r) || i.Seconds == 0 || m.Kind != metrics.Counter && m.Kind != metrics.Sum || !m.IsNumber() || !r.Has(m) {
		return 0, false
	}
	before := uint64(0) // a row that is new began at 0
	old := i.rows[Identify(r)]
	if old == nil && i.From.Left(r.Section) != 0 { // unless it was left out before
		return 0, false
	}
	if old != nil {
		if !old.Has(m) {
			return 0, false
		}
		before = old.Uint(m)
	}
	return i.PerSecond(before, r.Uint(m))
}

// PerSecond is the rate of a counter; false when it fell.
func (i *Interval) PerSecond(before, after uint64) (float64, bool) {
	if i.Seconds == 0 || after < before {
		return 0, false
	}
	return float64(after-before) / i.Seconds, true
}

// Of is the rate of a counter that a function tells of a snapshot; those of several allocators add up, as far as there
// are any.
func (i *Interval) Of(value func(*snapshot.Snapshot) uint64) (float64, bool) {
	return i.sum(func(p *Interval) (float64, bool) { return p.PerSecond(value(p.From), value(p.To)) })
}

// Change of a gauge in a second; it may be negative.
func (i *Interval) Change(value func(*snapshot.Snapshot) uint64) (float64, bool) {
	return i.sum(func(p *Interval) (float64, bool) {
		return (float64(value(p.To)) - float64(value(p.From))) / p.Seconds, true
	})
}

func (i *Interval) sum(of func(*Interval) (float64, bool)) (sum float64, ok bool) {
	if len(i.Parts) == 0 {
		if i.Seconds == 0 {
			return 0, false
		}
		return of(i)
	}
	for _, p := range i.Parts {
		if p.Seconds == 0 {
			continue
		}
		if v, told := of(p); told {
			sum, ok = sum+v, true
		}
	}
	return sum, ok
}
