// Package view turns snapshots into lines for people: the summary, and lists of classes, epochs, labels and phases.
package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"temporal-slab/tslab/internal/doctor"
	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/rates"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/table"
	"temporal-slab/tslab/internal/units"
)

// List is one of the lists of a snapshot.
type List struct {
	Name    string
	Section metrics.Section
	By      string   // ordered by this unless told otherwise
	Columns []string // metrics, the most important first
}

// Lists are those there are.
var Lists = []*List{
	{"classes", metrics.Class, "committed_bytes", []string{"committed_bytes", "live_bytes", "net_slabs", "empty_slabs_count",
		"slow_path_hits", "slow_path_cache_miss", "current_partial_full", "current_partial_null", "slow_path_epoch_closed",
		"lock_contended", "madvise_bytes"}},
	{"epochs", metrics.Epoch, "estimated_rss_bytes", []string{"state", "estimated_rss_bytes", "alloc_count", "age_sec", "refcount",
		"reclaimable_slab_count", "total_partial_slabs", "total_full_slabs", "madvise_bytes"}},
	{"labels", metrics.Label, "committed_bytes", []string{"committed_bytes", "live_bytes", "live_objects", "growth_per_second", "live_pace_10s", "committed_pace_10s", "phases_open", "open_bytes",
		"draining_phases", "draining_bytes", "oldest_draining_ns", "limit_ns", "outside_objects", "outside_bytes", "budget_refusals", "phases_opened", "objects_allocated", "objects_escaped", "drainability", "slow_path_hits", "lock_contended",
		"refusals"}},
	{"phases", metrics.Phase, "committed_bytes", []string{"state", "committed_bytes", "live_bytes", "live_objects", "age_ns", "refcount",
		"threads", "slabs", "empty_slabs", "peak_bytes", "objects_allocated"}},
	{"closes", metrics.Close, "closed_ns", []string{"closed_ns", "objects_escaped", "bytes_escaped", "objects_freed", "objects_released",
		"slabs_returned", "bytes_returned", "bytes_madvised", "rss_before_close", "rss_after_close", "close_ns"}},
}

var titles = map[string]string{
	"committed_bytes": "committed", "live_bytes": "live", "net_slabs": "slabs", "empty_slabs_count": "empty",
	"slow_path_hits": "slow", "slow_path_cache_miss": "miss", "current_partial_full": "full", "current_partial_null": "null",
	"slow_path_epoch_closed": "closed", "lock_contended": "waited", "madvise_bytes": "given back", "estimated_rss_bytes": "memory",
	"alloc_count": "objects", "age_sec": "age", "age_ns": "age", "refcount": "refs", "reclaimable_slab_count": "empty",
	"total_partial_slabs": "partial", "total_full_slabs": "full", "live_objects": "objects", "phases_opened": "phases",
	"phases_open": "open", "draining_phases": "draining", "draining_bytes": "pinned", "oldest_draining_ns": "oldest", "closed_ns": "ended", "bytes_escaped": "in",
	"objects_released": "released", "objects_freed": "freed", "slabs_returned": "slabs", "bytes_returned": "taken back", "bytes_madvised": "given back",
	"rss_before_close": "RSS before", "rss_after_close": "after", "close_ns": "took", "objects_allocated": "allocated", "objects_escaped": "escaped",
	"growth_per_second": "grows/s", "live_pace_10s": "live/s", "live_pace_100s": "live/s, 100 s", "live_pace_ever": "live/s ever",
	"committed_pace_10s": "comm./s", "committed_pace_100s": "comm./s, 100 s", "committed_pace_ever": "comm./s ever", "limit_left_bytes": "left", "open_bytes": "live there", "limit_ns": "limit in", "outside_objects": "outside", "outside_bytes": "bytes outside",
	"budget_refusals": "over budget", "drainability": "drain", "empty_slabs": "empty", "peak_bytes": "peak",
}

// Title of a metric in a heading.
func Title(key string) string {
	if t, ok := titles[key]; ok {
		return t
	}
	return key
}

// Find is the list with a name; nil when there is none.
func Find(name string) *List {
	for _, l := range Lists {
		if l.Name == name {
			return l
		}
	}
	return nil
}

// short are words that stand for a number.
var short = map[string]string{"growth": "growth_per_second", "live": "live_bytes", "committed": "committed_bytes", "age": "age_ns", "limit": "limit_ns"}

// Metric is a number of the list by which it can be ordered; perSecond when a rate is meant ("slow_path_hits/s").
func (l *List) Metric(word string) (m *metrics.Metric, perSecond bool, err error) {
	key, perSecond := strings.CutSuffix(word, "/s")
	if full, ok := short[key]; ok && metrics.Of(l.Section).Find(full) != nil {
		key = full
	}
	m = metrics.Of(l.Section).Find(key)
	switch {
	case m == nil || !m.IsNumber():
		if near := nearest(key, l.Numbers()); near != "" {
			return nil, false, fmt.Errorf("%s have no number %q; did you mean %s?", l.Name, key, near)
		}
		return nil, false, fmt.Errorf("%s have no number %q; there are: %s", l.Name, key, strings.Join(l.Numbers(), " "))
	case perSecond && m.Kind != metrics.Counter:
		return nil, false, fmt.Errorf("%q does not only grow, so it has no rate", key)
	}
	return m, perSecond, nil
}

// nearest is the word that may have been meant; "" when none is like it.
func nearest(word string, words []string) string {
	best, least := "", 4
	for _, w := range words {
		if d := units.Distance(word, w); d < least && len(word) > 3 {
			best, least = w, d
		}
	}
	return best
}

// Numbers are the metrics by which the list can be ordered.
func (l *List) Numbers() []string {
	var keys []string
	for _, m := range metrics.Of(l.Section).Metrics {
		if m.IsNumber() && m.Key != "version" && m.Kind != metrics.Identity {
			keys = append(keys, m.Key)
		}
	}
	return keys
}

// Order says by what and how much of a list is shown.
type Order struct {
	Metric    *metrics.Metric
	PerSecond bool
	Most      int     // rows; 0: all
	All       bool    // unused classes, too
	Filter    string  // shown are rows that have it in their name, in whatever case
	Of        *string // shown are rows of this label
}

// has says whether a row is shown, by its name and its label.
func (o Order) has(s *snapshot.Snapshot, r *snapshot.Row) bool {
	if o.Of != nil && r.S("label") != *o.Of {
		return false
	}
	return o.Filter == "" || strings.Contains(strings.ToLower(RowName(s, r)), strings.ToLower(o.Filter))
}

// Choice says in words which rows are shown; "" for all.
func (o Order) Choice() string {
	var words []string
	if o.Of != nil {
		words = append(words, "of "+units.Label(*o.Of))
	}
	if o.Filter != "" {
		words = append(words, fmt.Sprintf("with %q", o.Filter))
	}
	return strings.Join(words, " ")
}

// Unused says whether a row is of a class that nothing was ever taken from.
func Unused(r *snapshot.Row) bool {
	if r.Section != metrics.Class {
		return false
	}
	for _, m := range metrics.Of(r.Section).Metrics {
		if m.IsNumber() && m.Kind == metrics.Counter && r.Uint(m) != 0 {
			return false
		}
	}
	return r.U("live_bytes") == 0 && r.U("committed_bytes") == 0
}

// Count is how many rows there are to show, and how many are left out because they are unused.
func (l *List) Count(s *snapshot.Snapshot, o Order) (rows, unused int) {
	for _, r := range s.Rows(l.Section) {
		switch {
		case !o.has(s, r):
		case !o.All && Unused(r):
			unused++
		default:
			rows++
		}
	}
	return rows, unused
}

// Rest says what a table of so many rows does not show, and which flags show it; "" when it shows everything.
func (l *List) Rest(s *snapshot.Snapshot, o Order, shown int) string {
	rows, unused := l.Count(s, o)
	var words []string
	if rows > shown {
		words = append(words, fmt.Sprintf("%d more (-n %d)", rows-shown, rows))
	}
	if unused > 0 {
		words = append(words, fmt.Sprintf("%d unused %s (--all)", unused, l.Name))
	}
	if len(words) == 0 {
		return ""
	}
	return "and " + strings.Join(words, ", ")
}

// Rows in order: the largest first, then as they were. Rows that do not tell come last.
func (l *List) Rows(i *rates.Interval, o Order) []*snapshot.Row {
	rows := slices.Clone(i.To.Rows(l.Section))
	rows = slices.DeleteFunc(rows, func(r *snapshot.Row) bool { return !o.All && Unused(r) || !o.has(i.To, r) })
	value := func(r *snapshot.Row) float64 {
		if o.PerSecond {
			v, ok := i.Rate(r, o.Metric)
			if !ok {
				return math.Inf(-1)
			}
			return v
		}
		if !r.Has(o.Metric) {
			return math.Inf(-1)
		}
		return r.Float(o.Metric)
	}
	exact := !o.PerSecond && o.Metric.Type != metrics.F64
	slices.SortStableFunc(rows, func(a, b *snapshot.Row) int {
		if exact && a.Has(o.Metric) && b.Has(o.Metric) {
			return cmp.Compare(b.Uint(o.Metric), a.Uint(o.Metric))
		}
		return cmp.Compare(value(b), value(a))
	})
	if o.Most > 0 && len(rows) > o.Most {
		rows = rows[:o.Most]
	}
	return rows
}

// RowName is what a row is called.
func RowName(snap *snapshot.Snapshot, r *snapshot.Row) string {
	switch r.Section {
	case metrics.Class:
		return doctor.ClassName(snap.Of(r), r)
	case metrics.Epoch, metrics.Phase, metrics.Close:
		name := fmt.Sprintf("era %d", r.U("epoch_era"))
		if label := r.S("label"); label != "" {
			name = units.Text(label) + ", " + name
		}
		return name
	}
	return units.Text(r.S("label"))
}

// Cell writes one value; rates of counters when perSecond.
func Cell(i *rates.Interval, r *snapshot.Row, m *metrics.Metric, style units.Style, perSecond bool) string {
	switch {
	case perSecond && m.Kind == metrics.Counter:
		v, ok := i.Rate(r, m)
		if !ok {
			return "-"
		}
		return style.Rate(m.Unit, v)
	case !r.Has(m):
		return "-"
	case (m.Key == "oldest_draining_ns" || m.Key == "limit_ns") && r.Uint(m) == 0: // nothing drains, no limit is in sight
		return "-"
	case m.Key == "closed_ns" && !style.Raw: // how long before the figures
		return units.Duration(snapshot.Nanoseconds(max(r.Uint(m), i.To.Of(r).Document().U("figures_ns"))-r.Uint(m))) + " ago"
	case m.Type == metrics.State:
		return strings.ToLower(snapshot.StateName(r.Uint(m)))
	case m.Type == metrics.F64:
		return style.Float(m.Unit, r.Float(m))
	}
	return style.Uint(m.Unit, r.Uint(m))
}

// Table of a list. The metric it is ordered by stands first unless it is among the columns anyway. allRates: counters
// are shown as rates.
func (l *List) Table(i *rates.Interval, o Order, style units.Style, allRates bool) *table.Table {
	keys := l.Columns
	if !slices.Contains(keys, o.Metric.Key) || o.PerSecond && !allRates {
		keys = append([]string{o.Metric.Key}, keys...)
	}
	t := &table.Table{Columns: []table.Column{{Title: strings.TrimSuffix(strings.TrimSuffix(l.Name, "s"), "e"), Left: true}}}
	if l.Name == "phases" || l.Name == "epochs" || l.Name == "closes" {
		t.Columns[0].Title = strings.TrimSuffix(l.Name, "s")
	}
	if l.Name == "classes" {
		t.Columns[0].Title = "class"
	}
	several := len(i.To.Parts) != 0
	if several {
		t.Columns = append(t.Columns, table.Column{Title: "allocator"})
	}
	var columns []*metrics.Metric
	for n, key := range keys {
		m := metrics.Of(l.Section).Find(key)
		title := Title(key)
		if key == o.Metric.Key && (n == 0 || !slices.Contains(keys[:n], key)) {
			title += "▼"
			if o.PerSecond && !allRates {
				title = Title(key) + "/s▼"
			}
		}
		columns = append(columns, m)
		t.Columns = append(t.Columns, table.Column{Title: title, Left: m.Type == metrics.State})
	}
	share := l.shares(i.To, o)
	if share != 0 {
		t.Columns = slices.Insert(t.Columns, len(t.Columns)-len(columns)+1+slices.Index(keys, o.Metric.Key), table.Column{Title: "share"})
	}
	for _, r := range l.Rows(i, o) {
		cells := []string{RowName(i.To, r)}
		if several {
			cells = append(cells, r.AllocatorName())
		}
		for n, m := range columns {
			if share != 0 && n > 0 && columns[n-1] == o.Metric {
				cells = append(cells, units.Percent(r.Uint(o.Metric), share))
			}
			cells = append(cells, Cell(i, r, m, style, allRates || o.PerSecond && n == 0 && m == o.Metric))
		}
		if share != 0 && columns[len(columns)-1] == o.Metric {
			cells = append(cells, units.Percent(r.Uint(o.Metric), share))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// shares is the sum over all rows, shown or not, of what a list is ordered by, where it is an amount that adds up and rates are not
// asked for; else 0.
func (l *List) shares(s *snapshot.Snapshot, o Order) uint64 {
	m := o.Metric
	if o.PerSecond || m.Kind != metrics.Gauge || m.Type != metrics.U64 && m.Type != metrics.U32 || m.Unit != metrics.Bytes && m.Unit != metrics.Count {
		return 0
	}
	return s.Total(l.Section, m.Key)
}

// Sum is the last line of a list: what all of its rows come to; "" of lists without amounts.
func (l *List) Sum(s *snapshot.Snapshot, style units.Style) string {
	var words []string
	for _, key := range []string{"committed_bytes", "live_bytes", "live_objects"} {
		if m := metrics.Of(l.Section).Find(key); m != nil && len(s.Rows(l.Section)) != 0 {
			words = append(words, style.Uint(m.Unit, s.Total(l.Section, key))+" "+Title(key))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return "all " + l.Name + ": " + strings.Join(words, ", ")
}
