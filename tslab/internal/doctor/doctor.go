// Package doctor says in words what a snapshot shows, as slab_doctor does in the program itself: the same sections, the
// same thresholds, the same ACTION lines, which words.go has from the library. A snapshot knows less than the allocator: leaks are told by label and not by
// label and class, and closes without the number of slabs each took back.
package doctor

import (
	"fmt"
	"io"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/units"
)

// Finding is one thing to do.
type Finding struct {
	Section string `json:"section"`
	Subject string `json:"subject,omitempty"` // label, class or cause
	Action  string `json:"action"`

	Allocator *uint64 `json:"allocator,omitempty"` // among several
}

// Section is a part of the diagnosis.
type Section struct {
	Name     string    `json:"name"`
	Lines    []string  `json:"lines"` // ACTION lines included; the first is the headline
	Findings []Finding `json:"findings"`
}

// Report is the whole diagnosis.
type Report struct {
	Head     string
	Sections []*Section
	Parts    []*Part // of several allocators; there are no sections of all then
}

// Findings of all sections.
func (r *Report) Findings() []Finding {
	list := []Finding{}
	for _, s := range r.Sections {
		list = append(list, s.Findings...)
	}
	for _, p := range r.Parts {
		for _, f := range p.Report.Findings() {
			f.Allocator = &p.Allocator
			list = append(list, f)
		}
	}
	return list
}

// Verdict says how many things need attention.
func Verdict(findings int) string {
	switch findings {
	case 0:
		return sayEndNone
	case 1:
		return sayEndOne
	}
	return fmt.Sprintf(sayEndSome, findings)
}

// Write writes the text that slab_doctor writes. mark decorates ACTION lines.
func (r *Report) Write(w io.Writer, mark func(string) string) {
	fmt.Fprintln(w, r.Head)
	fmt.Fprintln(w, Verdict(len(r.Findings())))
	r.body(w, mark)
	for _, p := range r.Parts {
		p.write(w, mark)
	}
}

func (r *Report) body(w io.Writer, mark func(string) string) {
	for i, s := range r.Sections {
		for k, line := range s.Lines {
			switch {
			case k == 0:
				fmt.Fprintf(w, "%d. %s\n", i+1, line)
			case len(line) > 8 && line[:8] == "ACTION: ":
				fmt.Fprintf(w, "   %s\n", mark(line))
			default:
				fmt.Fprintf(w, "   %s\n", line)
			}
		}
	}
}

func (s *Section) say(format string, args ...any) {
	s.Lines = append(s.Lines, Singular(fmt.Sprintf(format, args...)))
}

func (s *Section) action(subject, format string, args ...any) {
	text := Singular(fmt.Sprintf(format, args...))
	s.Findings = append(s.Findings, Finding{Section: s.Name, Subject: subject, Action: text})
	s.Lines = append(s.Lines, "ACTION: "+text)
}

// Examine makes the diagnosis; leakSeconds is the age from which an ended phase that holds objects leaks.
func Examine(snap *snapshot.Snapshot, leakSeconds uint64) *Report {
	g := snap.Global()
	r := &Report{Head: Singular(fmt.Sprintf(sayHead,
		snap.Pid(), g.U("live_objects"), units.Bytes(g.U("committed_bytes")), units.Bytes(g.U("rss_bytes_current"))))}
	for _, part := range []struct {
		name string
		fn   func(*Section, *snapshot.Snapshot)
	}{
		{"leaks", func(s *Section, snap *snapshot.Snapshot) { leaks(s, snap, leakSeconds) }},
		{"slow path", slowPath}, {"reclamation", reclamation}, {"sampling", sampling}, {"locks", locks},
		{"refusals", refusals}, {"labels", labels}, {"growth", growth},
	} {
		s := &Section{Name: part.name, Findings: []Finding{}}
		part.fn(s, snap)
		r.Sections = append(r.Sections, s)
	}
	return r
}

// ---- slow path ----

func className(index, size uint64, classes int) string {
	switch { // the last two of the list; see docs/metrics.md
	case size == 0 && int(index) == classes-2:
		return sayClassRegions
	case size == 0 && int(index) == classes-1:
		return sayClassLarge
	}
	return fmt.Sprintf(sayClass, index, size)
}

// ClassName is what a class is called.
func ClassName(snap *snapshot.Snapshot, r *snapshot.Row) string {
	return className(r.U("class_index"), r.U("object_size"), len(snap.Rows(metrics.Class)))
}

type shares struct{ miss, closed, null, full float64 }

func judge(c *snapshot.Row, isLarge bool) (shares, string) {
	hits := c.U("slow_path_hits")
	p := shares{percent(c.U("slow_path_cache_miss"), hits), percent(c.U("slow_path_epoch_closed"), hits),
		percent(c.U("current_partial_null"), hits), percent(c.U("current_partial_full"), hits)}
	switch {
	case p.closed > Prevails:
		return p, adviceClosed
	case p.miss > Prevails && isLarge:
		return p, adviceLarge
	case p.miss > Prevails && uint64(percent(c.U("empty_slab_recycled"), c.U("new_slab_count"))) >= WarmShare:
		return p, adviceWarm
	case p.miss > Prevails:
		return p, adviceCold
	case p.null > Prevails:
		return p, adviceNull
	case p.full > Prevails:
		return p, adviceFull
	}
	return p, adviceNone
}

func slowPath(s *Section, snap *snapshot.Snapshot) {
	slowClasses(s, snap)
	if n := snap.Global().U("total_repairs"); n != 0 {
		s.action("repairs", sayRepairs, n)
	}
}

func slowClasses(s *Section, snap *snapshot.Snapshot) {
	var rows []*snapshot.Row
	for _, c := range snap.Rows(metrics.Class) {
		if c.U("slow_path_hits") != 0 {
			rows = append(rows, c)
		}
	}
	if len(rows) == 0 {
		s.say(saySlowNone)
		return
	}
	s.say(saySlow, snap.Total(metrics.Class, "slow_path_hits"), len(rows))
	sortDescending(rows, "slow_path_hits")
	for _, c := range rows[:min(len(rows), Rows)] {
		name := ClassName(snap, c)
		p, advice := judge(c, name == sayClassLarge)
		s.say(saySlowClass, name, c.U("slow_path_hits"), p.miss, p.closed, p.null, p.full)
		switch {
		case c.U("slow_path_hits") < FewHits:
		case p.closed > Prevails:
			s.action(name, "%s", advice)
		default:
			s.say("   %s", advice)
		}
	}
	if rest := len(rows) - Rows; rest > 0 {
		s.say(saySlowMore, rest)
	}
}
