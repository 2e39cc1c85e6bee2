package doctor

import (
	"fmt"
	"io"
	"strings"

	"temporal-slab/tslab/internal/snapshot"
)

// Part is the diagnosis of one allocator among several.
type Part struct {
	Allocator uint64
	Report    *Report
}

// Diagnose is Examine of each allocator of a process; its head has their sums.
func Diagnose(snap *snapshot.Snapshot, leakSeconds uint64) *Report {
	if len(snap.Parts) == 0 {
		return Examine(snap, leakSeconds)
	}
	r := &Report{Head: Examine(snap, leakSeconds).Head + fmt.Sprintf(", %d allocators", len(snap.Parts))}
	for _, p := range snap.Parts {
		r.Parts = append(r.Parts, &Part{p.Allocator(), Examine(p, leakSeconds)})
	}
	return r
}

// write leaves the sections out of an allocator that nothing was ever taken from.
func (p *Part) write(w io.Writer, mark func(string) string) {
	_, what, _ := strings.Cut(p.Report.Head, ", ")
	fmt.Fprintf(w, "\nallocator %d: %s\n", p.Allocator, what)
	p.Report.body(w, mark)
}
