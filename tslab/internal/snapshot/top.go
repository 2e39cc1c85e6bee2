package snapshot

import (
	"cmp"
	"slices"

	"temporal-slab/tslab/internal/metrics"
)

// restName is the label of the row that has the sums of labels without a row.
const restName = "(rest)"

// TopLabels is the snapshot with so many labels of each allocator at most, those that hold most now and those that have ever held most,
// half of each, and a row of the rest that has the sums of the others. The snapshot itself is left alone.
func (s *Snapshot) TopLabels(most int) *Snapshot {
	if len(s.Parts) != 0 {
		var parts []*Snapshot
		for _, p := range s.Parts {
			parts = append(parts, p.TopLabels(most))
		}
		t := Together(parts)
		t.Whole, t.Process = s.Whole, s.Process
		return t
	}
	rows := s.Rows(metrics.Label)
	if len(rows) <= most {
		return s
	}
	keep := map[*Row]bool{}
	for n, key := range []string{"committed_bytes", "peak_bytes"} {
		order := slices.Clone(rows)
		slices.SortStableFunc(order, func(a, b *Row) int { return cmp.Compare(b.U(key), a.U(key)) })
		for _, r := range order {
			if len(keep) >= most*(n+1)/2 {
				break
			}
			if !s.IsRest(r) {
				keep[r] = true
			}
		}
	}
	t := *s
	rest := NewRow(metrics.Label)
	left := s.Left(metrics.Label)
	var kept []*Row
	for _, r := range rows {
		if keep[r] {
			kept = append(kept, r)
			continue
		}
		if !s.IsRest(r) {
			left++
		}
		rest.add(r)
	}
	rest.SetUint(rest.find("label_id"), s.One(metrics.Registry).U("count"))
	rest.SetText(rest.find("label"), restName)
	t.rows[metrics.Label] = append(kept, rest)
	document := s.Document().clone()
	document.SetUint(document.find("labels_left_out"), left)
	t.rows[metrics.Document] = []*Row{document}
	for k := range metrics.Sections { // rows know which allocator they are of: these are of another snapshot
		if metrics.Of(k).Form == metrics.Array {
			for n, r := range t.rows[k] {
				if n == 0 {
					t.rows[k] = slices.Clone(t.rows[k])
				}
				t.rows[k][n] = r.clone()
				t.rows[k][n].part = nil
			}
		}
	}
	return &t
}

// add adds a row to one of sums: amounts add up, of peaks the largest counts; what else there is, is not told.
func (r *Row) add(from *Row) {
	for _, m := range metrics.Of(r.Section).Metrics {
		switch {
		case !from.Has(m) || m.IsArray() || m.Type == metrics.String || m.Type == metrics.F64 && m.Unit != metrics.Bytes:
		case m.Type == metrics.F64:
			r.SetFloat(m, r.Float(m)+from.Float(m))
		case m.Kind == metrics.Counter || m.Kind == metrics.Gauge:
			r.SetUint(m, Add(r.Uint(m), from.Uint(m)))
		case m.Kind == metrics.Peak && m.Key != "limit_bytes" && m.Key != "limit_used_bytes" && m.Key != "limit_ns":
			r.SetUint(m, max(r.Uint(m), from.Uint(m)))
		}
	}
}

func (r *Row) clone() *Row {
	c := *r
	c.nums, c.texts, c.arrays = slices.Clone(r.nums), slices.Clone(r.texts), slices.Clone(r.arrays)
	return &c
}
