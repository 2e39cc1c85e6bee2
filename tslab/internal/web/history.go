// Package web serves the page of a process: a picker, the doctor's verdict, figures and an hour of their history, as one
// document that the page asks for once a second. Everything is bounded: processes that are followed, points and labels
// that are kept, rows that are shown, so that a process with very many phases or labels costs what any other costs.
package web

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/rates"
	"temporal-slab/tslab/internal/snapshot"
)

// What is kept of a process: each second of five minutes, then each tenth second of an hour; of labels those that hold most.
const (
	every       = time.Second
	fineKept    = 5 * time.Minute
	coarseEvery = 10 * time.Second
	coarseKept  = time.Hour
	pointLabels = 12
)

// Point is what one reading says. What is not known is NaN, and null in JSON.
type Point struct {
	At                           int64 // milliseconds since 1970
	Live, Committed, RSS         uint64
	Limit, Used                  uint64
	Allocated                    float64    // objects a second
	Slow                         [4]float64 // full, miss, null, closed: hits a second
	CPU, Wait                    float64    // nanoseconds of a sampled allocation, mean of the interval
	Labels                       []LabelPoint
	RestCommitted, RestAllocated float64 // of labels that have no LabelPoint
}

// LabelPoint is what one label had.
type LabelPoint struct {
	ID              int
	Committed, Live uint64
	Allocated       float64
}

// History is what is kept of a process; the oldest first.
type History struct{ fine, coarse []Point }

// Add takes a reading. Readings come in order of time.
func (h *History) Add(p Point) {
	if n := len(h.fine); n != 0 && p.At <= h.fine[n-1].At {
		return
	}
	h.fine = append(h.fine, p)
	for len(h.fine) != 0 && h.fine[0].At < p.At-fineKept.Milliseconds() {
		old := h.fine[0]
		h.fine = h.fine[1:]
		if n := len(h.coarse); n == 0 || old.At-h.coarse[n-1].At >= coarseEvery.Milliseconds() {
			h.coarse = append(h.coarse, old)
		}
	}
	first := 0
	for first < len(h.coarse) && h.coarse[first].At < p.At-coarseKept.Milliseconds() {
		first++
	}
	h.coarse = h.coarse[first:]
	if cap(h.fine) > 4*int(fineKept/every) { // what was cut off in front goes back
		h.fine = slices.Clone(h.fine)
	}
	if cap(h.coarse) > 4*int(coarseKept/coarseEvery) {
		h.coarse = slices.Clone(h.coarse)
	}
}

// Since are the points after a time, the coarse ones first.
func (h *History) Since(at int64) []Point {
	var list []Point
	for _, part := range [][]Point{h.coarse, h.fine} {
		n, _ := slices.BinarySearchFunc(part, at+1, func(p Point, t int64) int { return cmp.Compare(p.At, t) })
		list = append(list, part[n:]...)
	}
	return list
}

// Len is how many points are kept.
func (h *History) Len() int { return len(h.fine) + len(h.coarse) }

// pointOf is the point of a reading; id gives each label a number.
func pointOf(i *rates.Interval, at time.Time, id func(string) int) Point {
	g := i.To.Global()
	p := Point{At: at.UnixMilli(), Live: g.U("live_bytes"), Committed: g.U("committed_bytes"), RSS: g.U("rss_bytes_current"),
		Limit: g.U("limit_bytes"), Used: g.U("limit_used_bytes")}
	rate := func(of func(*snapshot.Snapshot) uint64) float64 {
		if v, ok := i.Of(of); ok {
			return v
		}
		return math.NaN()
	}
	p.Allocated = rate(func(s *snapshot.Snapshot) uint64 { return s.Total(metrics.Label, "objects_allocated") })
	for n, key := range []string{"current_partial_full", "slow_path_cache_miss", "current_partial_null", "slow_path_epoch_closed"} {
		p.Slow[n] = rate(func(s *snapshot.Snapshot) uint64 { return s.Total(metrics.Class, key) })
	}
	p.CPU, p.Wait = sampled(i, "alloc_cpu_ns_sum"), sampled(i, "alloc_wait_ns_sum")
	for n, l := range labelsOf(i) {
		if n < pointLabels {
			p.Labels = append(p.Labels, LabelPoint{id(l.Name), l.Committed, l.Live, l.Allocated})
			continue
		}
		p.RestCommitted += float64(l.Committed)
		if !math.IsNaN(l.Allocated) {
			p.RestAllocated += l.Allocated
		}
	}
	return p
}

// sampled is the mean time of the samples that came within an interval.
func sampled(i *rates.Interval, key string) float64 {
	samples, ok := i.Of(func(s *snapshot.Snapshot) uint64 { return s.Total(metrics.Label, "alloc_samples") })
	sum, told := i.Of(func(s *snapshot.Snapshot) uint64 { return s.Total(metrics.Label, key) })
	if !ok || !told || samples == 0 {
		return math.NaN()
	}
	return sum / samples
}

// labelSum is a label of a process, of all its allocators.
type labelSum struct {
	Name            string
	Committed, Live uint64
	Allocated       float64
	Rows            []*snapshot.Row
}

// labelsOf are the labels of a reading, those first that hold most.
func labelsOf(i *rates.Interval) []*labelSum {
	byName := map[string]*labelSum{}
	var list []*labelSum
	allocated := metrics.Of(metrics.Label).Find("objects_allocated")
	for _, r := range i.To.Rows(metrics.Label) {
		name := r.S("label")
		l := byName[name]
		if l == nil {
			l = &labelSum{Name: name}
			byName[name] = l
			list = append(list, l)
		}
		l.Committed += r.U("committed_bytes")
		l.Live += r.U("live_bytes")
		if v, ok := i.Rate(r, allocated); ok {
			l.Allocated += v
		} else {
			l.Allocated = math.NaN()
		}
		l.Rows = append(l.Rows, r)
	}
	slices.SortStableFunc(list, func(a, b *labelSum) int {
		return cmp.Or(cmp.Compare(b.Committed, a.Committed), cmp.Compare(b.Live, a.Live), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// number writes a float as JSON has it.
func number(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, math.Round(v*100)/100, 'f', -1, 64)
}

// MarshalJSON writes [at, live, committed, rss, limit, used, allocated, full, miss, null, closed, cpu, wait, rest committed,
// rest allocated, [[label, committed, live, allocated], ...]].
func (p Point) MarshalJSON() ([]byte, error) {
	b := strconv.AppendInt([]byte{'['}, p.At, 10)
	for _, v := range []uint64{p.Live, p.Committed, p.RSS, p.Limit, p.Used} {
		b = strconv.AppendUint(append(b, ','), v, 10)
	}
	for _, v := range append([]float64{p.Allocated}, append(p.Slow[:], p.CPU, p.Wait, p.RestCommitted, p.RestAllocated)...) {
		b = number(append(b, ','), v)
	}
	b = append(b, ",["...)
	for n, l := range p.Labels {
		if n != 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, '['), int64(l.ID), 10)
		b = strconv.AppendUint(append(b, ','), l.Committed, 10)
		b = strconv.AppendUint(append(b, ','), l.Live, 10)
		b = append(number(append(b, ','), l.Allocated), ']')
	}
	return append(b, "]]"...), nil
}
