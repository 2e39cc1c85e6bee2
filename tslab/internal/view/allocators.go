package view

import (
	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/table"
	"temporal-slab/tslab/internal/units"
)

// Allocators is a table of the single allocators of several; nil when there is one.
func Allocators(s *snapshot.Snapshot, style units.Style) *table.Table {
	if len(s.Parts) == 0 {
		return nil
	}
	t := &table.Table{Columns: []table.Column{{Title: "allocator"}, {Title: "committed"}, {Title: "live"}, {Title: "objects"}, {Title: "open phases"},
		{Title: "draining"}, {Title: "figures of", Left: true}}}
	for _, p := range s.Parts {
		g := p.Global()
		age, _ := p.Old()
		of := units.Duration(age) + " ago"
		if p.Stale(snapshot.Latest) {
			of += ", changed since"
		}
		t.Rows = append(t.Rows, []string{style.Uint(metrics.ID, p.Allocator()), style.Uint(metrics.Bytes, g.U("committed_bytes")),
			style.Uint(metrics.Bytes, g.U("live_bytes")), style.Uint(metrics.Count, g.U("live_objects")), style.Uint(metrics.Count, g.U("open_phases")),
			style.Uint(metrics.Count, g.U("draining_phases")), of})
	}
	return t
}
