package view

import (
	"time"

	"temporal-slab/tslab/internal/doctor"
	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/rates"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/units"
)

// Flow is a figure of `watch`: a gauge as it is now, or a counter by the second.
type Flow struct {
	Key, Title, What string
	Unit             metrics.Unit
	Counter          bool
	value            func(*snapshot.Snapshot) uint64
}

func ofGlobal(key string) func(*snapshot.Snapshot) uint64 {
	return func(s *snapshot.Snapshot) uint64 { return s.Global().U(key) }
}

func ofLabels(key string) func(*snapshot.Snapshot) uint64 {
	return func(s *snapshot.Snapshot) uint64 { return s.Total(metrics.Label, key) }
}

// Flows are the figures of `watch`, the most telling first.
var Flows = []Flow{
	{"live_bytes", "live", "memory in use", metrics.Bytes, false, ofGlobal("live_bytes")},
	{"committed_bytes", "committed", "memory of slabs and large objects", metrics.Bytes, false, ofGlobal("committed_bytes")},
	{"limit_ns", "limit in", "time to the nearest limit at the pace of growth", metrics.Nanoseconds, false, ofGlobal("limit_ns")},
	{"rss_bytes_current", "rss", "resident memory of the process", metrics.Bytes, false, ofGlobal("rss_bytes_current")},
	{"objects_allocated", "alloc/s", "objects allocated", metrics.Count, true, ofLabels("objects_allocated")},
	{"objects_freed", "free/s", "objects freed one by one", metrics.Count, true, ofLabels("objects_freed")},
	{"objects_released", "released/s", "objects ended with their phase", metrics.Count, true, ofLabels("objects_released")},
	{"phases_ended", "phases/s", "phases ended", metrics.Count, true, ofLabels("phases_ended")},
	{"draining_phases", "draining", "ended phases that hold memory", metrics.Count, false, ofGlobal("draining_phases")},
	{"total_slow_path_hits", "slow/s", "allocations that left the fast path", metrics.Count, true, ofGlobal("total_slow_path_hits")},
	{"objects_escaped", "escaped/s", "objects that outlived their phase", metrics.Count, true, ofLabels("objects_escaped")},
	{"lock_contended", "waits/s", "lock acquisitions that had to wait", metrics.Count, true, lockWaits},
	{"total_madvise_bytes", "given back/s", "memory given back to the system", metrics.Bytes, true, ofGlobal("total_madvise_bytes")},
	{"refusals", "refused/s", "refused calls", metrics.Count, true, refused},
}

func lockWaits(s *snapshot.Snapshot) uint64 {
	_, contended := doctor.Locks(s)
	return contended
}

func refused(s *snapshot.Snapshot) uint64 {
	var sum uint64
	for _, m := range metrics.Of(metrics.Refusal).Metrics {
		if m.Kind == metrics.Counter {
			sum = snapshot.Add(sum, s.One(metrics.Refusal).Uint(m))
		}
	}
	return sum
}

// Value is what the figure is over an interval; false when it cannot be said.
func (f *Flow) Value(i *rates.Interval) (float64, bool) {
	if !f.Counter {
		return float64(f.value(i.To)), true
	}
	return i.Of(f.value)
}

// Change is how fast a gauge moves; it may be negative. The process's own is told by each of its allocators.
func (f *Flow) Change(i *rates.Interval) (float64, bool) {
	if f.Key == "rss_bytes_current" && len(i.Parts) != 0 {
		i = i.Parts[0]
	}
	return i.Change(f.value)
}

// Over is the time that rates are of, or why there are none, in a word.
func Over(i *rates.Interval) string {
	switch {
	case i.Seconds != 0:
		return units.Duration(time.Duration(i.Seconds * 1e9))
	case i.To.State == snapshot.Stopped || i.To.State == snapshot.Ended:
		return i.To.State.String()
	case rates.Same(i.From, i.To) || len(i.Parts) != 0 && i.Why != "first reading":
		return "idle"
	}
	return "-"
}

// Cell writes it.
func (f *Flow) Cell(i *rates.Interval, style units.Style) string {
	v, ok := f.Value(i)
	switch {
	case !ok:
		return "-"
	case f.Key == "limit_ns" && v == 0: // not in sight
		return "-"
	case !f.Counter:
		return style.Uint(f.Unit, f.value(i.To))
	case style.Raw:
		return style.Rate(f.Unit, v)
	case f.Unit == metrics.Bytes:
		return style.Float(f.Unit, v)
	}
	return units.Count(v)
}

// Clock is the time of day of a snapshot, or of now.
func Clock(s *snapshot.Snapshot) string {
	t, ok := s.Time()
	if !ok {
		t = time.Now()
	}
	return t.Format("15:04:05")
}
