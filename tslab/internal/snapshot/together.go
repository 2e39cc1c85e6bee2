package snapshot

// The allocators of one process, together.

import (
	"strconv"
	"strings"
	"time"

	"temporal-slab/tslab/internal/metrics"
)

// Together is a snapshot of several allocators of a process: single rows have their sums, lists the rows of each. Of ages
// and peaks it has the largest, of texts those of the first. One alone is itself.
func Together(parts []*Snapshot) *Snapshot {
	first := parts[0]
	if len(parts) == 1 {
		return first
	}
	s := New()
	s.Parts, s.Origin, s.State, s.Process = parts, first.Origin, first.State, first.Process
	s.Aged = true
	for k := range metrics.Sections {
		if metrics.Of(k).Form == metrics.Array {
			for _, p := range parts {
				for _, r := range p.Rows(k) {
					r.part = p
					s.Append(r)
				}
			}
			continue
		}
		for _, m := range metrics.Of(k).Metrics {
			merge(s.One(k), m, parts)
		}
	}
	for _, p := range parts {
		s.Aged = s.Aged && p.Aged
		s.Age = max(s.Age, p.Age)
		s.Whole = s.Whole || p.Whole
	}
	return s
}

// shared are figures of the process or the library that each allocator tells.
var shared = map[string]bool{"rss_bytes_current": true, "page_size": true, "allocators": true, "uptime_ns": true, "timestamp_ns": true,
	"figures_age_ns": true, "phases_age_ns": true, "epoch_count": true, "period": true, "enabled": true, "changed_since": true}

// merge tells a metric of a single row if all parts tell it.
func merge(to *Row, m *metrics.Metric, parts []*Snapshot) {
	for _, p := range parts {
		if !p.One(m.Section).Has(m) {
			return
		}
	}
	rows := make([]*Row, len(parts))
	for i, p := range parts {
		rows[i] = p.One(m.Section)
	}
	if m.Section == metrics.Global && strings.HasPrefix(m.Key, "limit_") {
		rows = rows[nearest(rows):][:1] // each allocator has limits of its own
	}
	switch {
	case m.Type == metrics.String:
		to.SetText(m, rows[0].Text(m))
	case m.IsArray():
		sum := make([]uint64, m.Entries())
		for _, r := range rows {
			for i, v := range r.Array(m) {
				sum[i] = Add(sum[i], v)
			}
		}
		to.SetArray(m, sum)
	case m.Type == metrics.F64 && m.Section == metrics.Global: // bytes a second
		sum := 0.0
		for _, r := range rows {
			sum += r.Float(m)
		}
		to.SetFloat(m, sum)
	case m.Type == metrics.F64:
		to.SetFloat(m, mean(m, rows))
	case m.Kind == metrics.Identity || m.Unit == metrics.ID:
		to.SetUint(m, rows[0].Uint(m))
	default:
		to.SetUint(m, number(m, rows))
	}
}

// nearest is the row of the allocator that reaches its limit first; where none is on its way, of the fullest.
func nearest(rows []*Row) int {
	found := 0
	for i, r := range rows[1:] {
		one, other := r.U("limit_ns"), rows[found].U("limit_ns")
		fuller := float64(r.U("limit_used_bytes"))*float64(rows[found].U("limit_bytes")) >
			float64(rows[found].U("limit_used_bytes"))*float64(r.U("limit_bytes"))
		if (one != 0 && (other == 0 || one < other)) || (one == 0 && other == 0 && fuller) {
			found = i + 1
		}
	}
	return found
}

func number(m *metrics.Metric, rows []*Row) uint64 {
	var v uint64
	for _, r := range rows {
		if m.Kind == metrics.Peak || m.Kind == metrics.Copy || shared[m.Key] {
			v = max(v, r.Uint(m))
		} else {
			v = Add(v, r.Uint(m))
		}
	}
	return v
}

// mean of the means of several, by the number of what each is of: all floats of single rows are those of sampled times.
func mean(m *metrics.Metric, rows []*Row) float64 {
	of, sum, count := "samples", 0.0, 0.0
	if m.Key == "avg_repair_cpu_ns" || m.Key == "avg_repair_wait_ns" {
		of = "repair_count"
	}
	for _, r := range rows {
		n := float64(r.U(of))
		sum, count = sum+n*r.Float(m), count+n
	}
	if count == 0 {
		return 0
	}
	return sum / count
}

// AllocatorName is what the allocator of a row is called among several; "" when there is one.
func (r *Row) AllocatorName() string {
	if r.part == nil {
		return ""
	}
	return strconv.FormatUint(r.part.Allocator(), 10)
}

// Latest is the time from which figures that have not changed count as old: see Stale.
const Latest = 3 * time.Second
