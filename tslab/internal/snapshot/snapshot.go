// Package snapshot holds what an allocator said of itself at one moment. Whatever tslab reads becomes a Snapshot, and
// whatever it shows is made from one.
//
// A Snapshot has rows for each section of the table in package metrics. A row keeps its numbers, texts and arrays in
// three slices, and a bit for each metric that says whether it was told at all: a number that an older library or a
// smaller source does not have is absent, never 0.
package snapshot

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"temporal-slab/tslab/internal/metrics"
)

// Row is one object of the document.
type Row struct {
	Section metrics.Section
	set     [metrics.MostColumns / 64]uint64
	nums    []uint64 // floats by their bits
	texts   []string
	arrays  [][]uint64
	part    *Snapshot // whose row it is, in a snapshot of several allocators; else nil
}

// NewRow is a row in which nothing was told.
func NewRow(s metrics.Section) *Row {
	i := metrics.Of(s)
	r := &Row{Section: s, nums: make([]uint64, i.Numbers)}
	if i.Texts != 0 {
		r.texts = make([]string, i.Texts)
	}
	if i.Arrays != 0 {
		r.arrays = make([][]uint64, i.Arrays)
	}
	return r
}

// Has says whether the metric was told.
func (r *Row) Has(m *metrics.Metric) bool { return r.set[m.Column/64]&(1<<(m.Column%64)) != 0 }

func (r *Row) told(m *metrics.Metric) { r.set[m.Column/64] |= 1 << (m.Column % 64) }

// Setters and getters by metric.

func (r *Row) SetUint(m *metrics.Metric, v uint64) {
	r.nums[m.Slot] = v
	r.told(m)
}

func (r *Row) SetFloat(m *metrics.Metric, v float64) { r.SetUint(m, math.Float64bits(v)) }

func (r *Row) SetText(m *metrics.Metric, v string) {
	r.texts[m.Slot] = v
	r.told(m)
}

func (r *Row) SetArray(m *metrics.Metric, v []uint64) {
	r.arrays[m.Slot] = v
	r.told(m)
}

func (r *Row) Uint(m *metrics.Metric) uint64    { return r.nums[m.Slot] }
func (r *Row) Text(m *metrics.Metric) string    { return r.texts[m.Slot] }
func (r *Row) Array(m *metrics.Metric) []uint64 { return r.arrays[m.Slot] }

// Float is any number as a float.
func (r *Row) Float(m *metrics.Metric) float64 {
	if m.Type == metrics.F64 {
		return math.Float64frombits(r.nums[m.Slot])
	}
	return float64(r.nums[m.Slot])
}

// find panics on a key that is not in the table: that is a mistake in this program.
func (r *Row) find(key string) *metrics.Metric {
	m := metrics.Of(r.Section).Find(key)
	if m == nil {
		panic(fmt.Sprintf("no metric %q in section %d", key, r.Section))
	}
	return m
}

// Getters by key; what was not told is 0.

func (r *Row) U(key string) uint64 { return r.Uint(r.find(key)) }
func (r *Row) F(key string) float64 {
	return r.Float(r.find(key))
}
func (r *Row) S(key string) string { return r.Text(r.find(key)) }

// Tells says whether a key was told.
func (r *Row) Tells(key string) bool { return r.Has(r.find(key)) }

// StateName is the word for a State.
func StateName(v uint64) string {
	if v < uint64(len(metrics.States)) {
		return metrics.States[v]
	}
	return strconv.FormatUint(v, 10)
}

// State is what the process does that a snapshot was read from.
type State int

// The states; Unknown is that of a document. Ended is also an allocator that its process has destroyed.
const (
	Unknown State = iota
	Running
	Stopped
	Ended
)

func (s State) String() string { return [...]string{"unknown", "running", "stopped", "ended"}[s] }

// Snapshot is one document.
type Snapshot struct {
	Parts    []*Snapshot // of a process with several allocators: of each; the rest is their sum, see Together
	Named    bool        // of one allocator among several that its process has or had
	Whole    bool        // all allocators were looked for that the process shows
	Process  int         // id of the process as its reader knows it; 0: as the document says
	rows     [metrics.Sections][]*Row
	Origin   string        // where it was read, for people
	Recorded time.Time     // when a recorder read it; zero: it was read just now, or is a document
	Aged     bool          // Age is known from a clock that does not jump
	Age      time.Duration // how long ago the figures were taken
	State    State
	Ignored  []string // words of the process's TSLAB_OPTIONS that it ignores, explained; read beside the figures
	leftOut  [metrics.Sections]uint64
}

// Left is how many rows of a section the snapshot does not have.
func (s *Snapshot) Left(k metrics.Section) uint64 {
	if len(s.Parts) != 0 {
		var sum uint64
		for _, p := range s.Parts {
			sum = Add(sum, p.Left(k))
		}
		return sum
	}
	d := s.Document()
	switch {
	case k == metrics.Label && d.Tells("labels_left_out"):
		return d.U("labels_left_out")
	case k == metrics.Phase && d.Tells("phases_left_out"):
		return d.U("phases_left_out")
	case k == metrics.Epoch && d.Tells("epochs_left_out"):
		return d.U("epochs_left_out")
	}
	return s.leftOut[k]
}

// LeaveOut says that a source had no room for so many rows of a section.
func (s *Snapshot) LeaveOut(k metrics.Section, rows uint64) { s.leftOut[k] = rows }

// Just says that the document was written this moment, so that what it says of its age and of its process is so now.
func (s *Snapshot) Just() {
	d := s.Document()
	if d.Tells("figures_age_ns") {
		s.Aged, s.Age = true, Nanoseconds(d.U("figures_age_ns"))
	}
	for _, state := range []State{Running, Stopped, Ended} {
		if d.S("process_state") == state.String() {
			s.State = state
		}
	}
}

// New is a snapshot whose single rows exist and whose lists are empty.
func New() *Snapshot {
	s := &Snapshot{}
	for k := range s.rows {
		if metrics.Of(metrics.Section(k)).Form != metrics.Array {
			s.rows[k] = []*Row{NewRow(metrics.Section(k))}
		}
	}
	return s
}

// Rows of a section.
func (s *Snapshot) Rows(k metrics.Section) []*Row { return s.rows[k] }

// One is the row of a section that has one.
func (s *Snapshot) One(k metrics.Section) *Row { return s.rows[k][0] }

// Append adds a row to a list.
func (s *Snapshot) Append(r *Row) { s.rows[r.Section] = append(s.rows[r.Section], r) }

// Global, Document: the two rows that most figures are in.
func (s *Snapshot) Global() *Row   { return s.One(metrics.Global) }
func (s *Snapshot) Document() *Row { return s.One(metrics.Document) }

// Uptime is the age of the allocator.
func (s *Snapshot) Uptime() time.Duration { return Nanoseconds(s.Document().U("uptime_ns")) }

// Time is when it was taken; false when the document does not say, or says what no calendar has.
func (s *Snapshot) Time() (time.Time, bool) {
	ns := s.Document().U("timestamp_ns")
	if ns == 0 || ns > math.MaxInt64 {
		return time.Time{}, false
	}
	return time.Unix(0, int64(ns)), true
}

// Old is how long ago the figures were taken; false when no clock tells.
func (s *Snapshot) Old() (time.Duration, bool) {
	if s.Aged {
		return s.Age, true
	}
	t, ok := s.Time()
	age := time.Since(t)
	return age, ok && age >= 0
}

// Pid is the id of the process: the one by which it was read, else the one that the document tells, which is that of its
// own name space.
func (s *Snapshot) Pid() uint64 {
	if s.Process != 0 {
		return uint64(s.Process)
	}
	return s.Document().U("pid")
}

// Each is the snapshots of single allocators: the parts, or the snapshot itself.
func (s *Snapshot) Each() []*Snapshot {
	if len(s.Parts) != 0 {
		return s.Parts
	}
	return []*Snapshot{s}
}

// Allocator is the place of a single allocator in the segment of its process.
func (s *Snapshot) Allocator() uint64 { return s.Document().U("allocator") }

// Of is the snapshot of the allocator that has the row.
func (s *Snapshot) Of(r *Row) *Snapshot {
	if r.part != nil {
		return r.part
	}
	return s
}

// IsRest says whether a row has the sums of the labels that have no row of their own.
func (s *Snapshot) IsRest(r *Row) bool {
	of := s.Of(r)
	return r.Section == metrics.Label && of.Left(metrics.Label) != 0 && r.U("label_id") == of.One(metrics.Registry).U("count")
}

// Changed says whether something is known to have changed since the figures were taken.
func (s *Snapshot) Changed() bool { return s.Document().U("changed_since") != 0 }

// Stale says whether the figures are known not to be the latest: something has changed since, and nobody published it for
// longer than a process that works takes.
func (s *Snapshot) Stale(than time.Duration) bool {
	for _, p := range s.Each() {
		if age, ok := p.Old(); p.Changed() && ok && age >= than {
			return true
		}
	}
	return false
}

// Unseen is how many allocators the process has of which nothing is known: they found no place in its segment, have not
// published yet, or were made without it. Only who looked for all of them can tell.
func (s *Snapshot) Unseen() uint64 {
	n, seen := s.Document().U("allocators"), uint64(len(s.Each()))
	if !s.Whole || n < seen {
		return 0
	}
	return n - seen
}

// Total adds up a counter over the rows of a list; it does not wrap round.
func (s *Snapshot) Total(k metrics.Section, key string) uint64 {
	var sum uint64
	for _, r := range s.rows[k] {
		sum = Add(sum, r.U(key))
	}
	return sum
}

// Add adds without wrapping round.
func Add(a, b uint64) uint64 {
	if b > math.MaxUint64-a {
		return math.MaxUint64
	}
	return a + b
}

// Nanoseconds as a duration, at most the longest there is.
func Nanoseconds(ns uint64) time.Duration {
	if ns > math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
