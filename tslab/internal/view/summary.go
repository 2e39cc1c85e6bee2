package view

import (
	"fmt"
	"strings"
	"time"

	"temporal-slab/tslab/internal/doctor"
	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/units"
)

// Head says what was read: one line.
func Head(s *snapshot.Snapshot) string {
	d := s.Document()
	return fmt.Sprintf("temporal-slab %s, %s, up %s%s", orDash(units.Text(d.S("version"))), Whose(s), units.Duration(s.Uptime()), Fresh(s))
}

// Whose names the process, by the id that its reader knows and the one that it knows itself, and its allocators.
func Whose(s *snapshot.Snapshot) string {
	text := fmt.Sprintf("pid %d", s.Pid())
	if inner := s.Document().U("pid"); inner != s.Pid() {
		text += fmt.Sprintf(" (%d in its container)", inner)
	}
	switch {
	case len(s.Parts) != 0:
		text += fmt.Sprintf(", %d allocators", len(s.Parts))
	case s.Named:
		text += fmt.Sprintf(", allocator %d", s.Allocator())
	}
	return text
}

// Notes are sentences on what the figures do not show.
func Notes(s *snapshot.Snapshot) []string {
	var list []string
	for _, p := range s.Each() {
		age, ok := p.Old()
		if !ok || !p.Changed() || age < snapshot.Latest {
			continue
		}
		who := "The allocator has"
		if len(s.Parts) != 0 {
			who = fmt.Sprintf("Allocator %d has", p.Allocator())
		}
		list = append(list, fmt.Sprintf("%s changed since its figures were taken, %s ago, but has not published newer figures. "+
			"A program should call slab_stats_publish before it idles.", who, units.Duration(age)))
	}
	if n := s.Unseen(); n != 0 {
		list = append(list, fmt.Sprintf("%d more allocators of the process are not shown: they lack the option segment, have no place among the %d of the segment, "+
			"or have not published yet.", n, places))
	}
	if n := s.Left(metrics.Label); n != 0 {
		list = append(list, fmt.Sprintf("%d labels have no row of their own; the row (rest) contains their sums.", n))
	}
	return list
}

const places = 16 // of a segment

// Fresh goes on in a sentence with what the process does and how old its figures are, as far as that is known.
func Fresh(s *snapshot.Snapshot) string {
	text := ""
	if s.State != snapshot.Unknown {
		text = ", " + s.State.String()
	}
	switch age, ok := s.Old(); {
	case !s.Recorded.IsZero():
		text += ", recorded " + s.Recorded.Format(time.DateTime)
	case ok:
		text += ", figures of " + units.Duration(age) + " ago"
	}
	if s.Stale(snapshot.Latest) {
		text += ", changed since"
	}
	return text
}

func orDash(t string) string {
	if t == "" {
		return "?"
	}
	return t
}

// Fact is a line of the summary.
type Fact struct{ Name, Text string }

// Summary is what one looks at first.
func Summary(s *snapshot.Snapshot, style units.Style) []Fact {
	g := s.Global()
	bytes := func(key string) string { return style.Uint(metrics.Bytes, g.U(key)) }
	count := func(key string) string { return style.Uint(metrics.Count, g.U(key)) }
	facts := []Fact{
		{"Memory", fmt.Sprintf("%s committed, %s live (%s) in %s objects; bookkeeping %s; RSS of the process %s",
			bytes("committed_bytes"), bytes("live_bytes"), units.Percent(g.U("live_bytes"), g.U("committed_bytes")),
			count("live_objects"), bytes("metadata_bytes"), bytes("rss_bytes_current"))},
		{"Phases", fmt.Sprintf("%s open, %s draining%s; current epoch %d; %s opened, %s ended so far", count("open_phases"),
			count("draining_phases"), pinned(s, style), g.U("current_epoch"), style.Uint(metrics.Count, s.Total(metrics.Label, "phases_opened")),
			style.Uint(metrics.Count, s.Total(metrics.Label, "phases_ended")))},
		{"Growth", growth(s, style)},
		{"Objects", fmt.Sprintf("%s allocated, %s freed, %s released with their phase, %s escaped",
			total(s, style, "objects_allocated"), total(s, style, "objects_freed"), total(s, style, "objects_released"),
			total(s, style, "objects_escaped")) + outside(s, style)},
		{"Slow path", slowPath(s, style)},
		{"Kernel", fmt.Sprintf("%s given back in %s calls, %s failed", bytes("total_madvise_bytes"), count("total_madvise_calls"),
			count("total_madvise_failures"))},
		{"Locks", locks(s, style)},
		{"Sampling", sampling(s)},
		{"Refusals", refusals(s, style)},
	}
	for n := range facts {
		facts[n].Text = doctor.Singular(facts[n].Text)
	}
	return facts
}

// growth says what came to live, and when which limit is reached.
func growth(s *snapshot.Snapshot, style units.Style) string {
	g := s.Global()
	text := "unknown before a second reading"
	switch {
	case !g.Tells("growth_ns"):
		return "not told"
	case g.U("growth_ns") != 0 && g.U("growth_bytes") == 0:
		text = "none in " + style.Uint(metrics.Nanoseconds, g.U("growth_ns"))
	case g.U("growth_ns") != 0:
		text = style.Uint(metrics.Bytes, g.U("growth_bytes")) + " in " + style.Uint(metrics.Nanoseconds, g.U("growth_ns")) + ", " +
			style.Rate(metrics.Bytes, g.F("growth_per_second")) + " now"
		if l := doctor.FastestLabel(s); l != nil {
			text += ", most under " + units.Label(l.S("label"))
		}
	}
	if g.U("limit_bytes") != 0 {
		text += fmt.Sprintf("; %s of %s (%s) in use", style.Uint(metrics.Bytes, g.U("limit_used_bytes")),
			style.Uint(metrics.Bytes, g.U("limit_bytes")), units.Text(g.S("limit_name")))
	}
	if g.U("limit_ns") != 0 {
		text += ", reached in " + style.Uint(metrics.Nanoseconds, g.U("limit_ns"))
	}
	for _, l := range s.Rows(metrics.Label) {
		if l.U("limit_ns") != 0 {
			text += fmt.Sprintf("; budget of %s reached in %s", units.Label(l.S("label")), style.Uint(metrics.Nanoseconds, l.U("limit_ns")))
		}
	}
	return text
}

// outside goes on with what was made outside of scopes, and by which labels.
func outside(s *snapshot.Snapshot, style units.Style) string {
	makers, objects, bytes := doctor.Makers(s)
	if objects == 0 {
		return ""
	}
	return fmt.Sprintf("; %s (%s) made outside of scopes, most by %s", style.Uint(metrics.Count, objects),
		style.Uint(metrics.Bytes, bytes), makers)
}

// pinned says what objects in ended phases hold, and since when.
func pinned(s *snapshot.Snapshot, style units.Style) string {
	oldest := uint64(0)
	for _, l := range s.Rows(metrics.Label) {
		oldest = max(oldest, l.U("oldest_draining_ns"))
	}
	if oldest == 0 {
		return ""
	}
	return fmt.Sprintf(", which hold %s for up to %s", style.Uint(metrics.Bytes, s.Total(metrics.Label, "draining_bytes")),
		style.Uint(metrics.Nanoseconds, oldest))
}

func total(s *snapshot.Snapshot, style units.Style, key string) string {
	return style.Uint(metrics.Count, s.Total(metrics.Label, key))
}

func slowPath(s *snapshot.Snapshot, style units.Style) string {
	g := s.Global()
	hits := g.U("total_slow_path_hits")
	text := style.Uint(metrics.Count, hits) + " hits"
	// Refused by an ended phase is an allocation that left the fast path, and none that was made.
	if all := snapshot.Add(s.Total(metrics.Label, "objects_allocated"), g.U("total_slow_epoch_closed")); all != 0 {
		text += " (" + units.Percent(hits, all) + " of allocations)"
	}
	return text + fmt.Sprintf(": full %s, miss %s, null %s, closed %s", units.Percent(s.Total(metrics.Class, "current_partial_full"), hits),
		units.Percent(g.U("total_slow_cache_miss"), hits), units.Percent(s.Total(metrics.Class, "current_partial_null"), hits),
		units.Percent(g.U("total_slow_epoch_closed"), hits))
}

func locks(s *snapshot.Snapshot, style units.Style) string {
	fast, contended := doctor.Locks(s)
	all := snapshot.Add(fast, contended)
	if all == 0 {
		return "none taken"
	}
	return fmt.Sprintf("%s of %s acquisitions waited: %s", units.Percent(contended, all), style.Uint(metrics.Count, all),
		doctor.LockHealth(contended, all))
}

func sampling(s *snapshot.Snapshot) string {
	r := s.One(metrics.Sampling)
	if r.U("period") == 0 {
		return "off"
	}
	if r.U("samples") == 0 {
		return fmt.Sprintf("one slow allocation in %d, none so far", r.U("period"))
	}
	ns := func(key string) string { return units.Duration(time.Duration(min(r.F(key), 9e18))) }
	return fmt.Sprintf("%s on average = cpu %s + wait %s; longest %s (%d samples, one slow one in %d)", ns("avg_wall_ns"), ns("avg_cpu_ns"),
		ns("avg_wait_ns"), ns("max_wall_ns"), r.U("samples"), r.U("period"))
}

func refusals(s *snapshot.Snapshot, style units.Style) string {
	r := s.One(metrics.Refusal)
	var words []string
	for _, m := range metrics.Of(metrics.Refusal).Metrics {
		if m.Kind == metrics.Counter && r.Uint(m) != 0 {
			words = append(words, m.Key+" "+style.Uint(metrics.Count, r.Uint(m))+under(s, m.Key))
		}
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// under names the label that budgets refuse most.
func under(s *snapshot.Snapshot, cause string) string {
	if most := doctor.MostRefused(s); cause == "over_budget" && most != nil {
		return " (most under " + units.Label(most.S("label")) + ")"
	}
	return ""
}

// Left says which rows are missing, for the foot of a list; "" when none.
func Left(s *snapshot.Snapshot, l *List) string {
	var words []string
	if n := s.Left(l.Section); n != 0 && l.Section == metrics.Label {
		words = append(words, fmt.Sprintf("%d more labels have no row; (rest) is their sum", n))
	} else if n != 0 {
		words = append(words, fmt.Sprintf("%d more %s have no row; those shown are the largest and the oldest", n, l.Name))
	}
	d := s.Document()
	if rows, figures := d.U("phases_age_ns"), d.U("figures_age_ns"); (l.Section == metrics.Phase || l.Section == metrics.Epoch) && rows > figures+1e9 {
		words = append(words, "the rows are "+units.Duration(snapshot.Nanoseconds(rows-figures))+" older than the other figures")
	}
	return strings.Join(words, "; ")
}
