package web

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"temporal-slab/tslab/internal/doctor"
	"temporal-slab/tslab/internal/heap"
	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/options"
	"temporal-slab/tslab/internal/rates"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/units"
	"temporal-slab/tslab/internal/view"
)

// Rows that a page has at most.
const (
	pageLabels   = 100
	pageOldest   = 5
	pageCloses   = 16
	pagePhases   = 50 // of the label that was chosen
	pageSites    = 20
	pageFindings = 50
)

// Document is all that a page shows.
type Document struct {
	Pid       int      `json:"pid"`
	Command   string   `json:"command"`
	Host      string   `json:"host"`
	Version   string   `json:"version"`
	Options   string   `json:"options"`
	Ignored   []string `json:"ignored"`
	State     string   `json:"state"`
	Recorded  bool     `json:"recorded"`
	Ended     bool     `json:"ended"`
	Next      int      `json:"next"`
	Error     string   `json:"error"`
	Server    int64    `json:"server"` // when it began: numbers of labels are this server's
	At        int64    `json:"at"`     // of the reading, milliseconds since 1970
	Uptime    float64  `json:"uptime"`
	Age       *float64 `json:"age"`
	Over      float64  `json:"over"` // seconds that rates are of; 0: there are none
	Notes     []string `json:"notes"`
	Verdict   Verdict  `json:"verdict"`
	Now       Now      `json:"now"`
	Labels    []Label  `json:"labels"`
	MoreLabel int      `json:"more_labels"`
	Oldest    []Phase  `json:"oldest"`
	Open      []Phase  `json:"open"`
	Classes   []Class  `json:"classes"`
	Closes    []Close  `json:"closes"`
	Names     [][2]any `json:"names"` // number and label of every label that points or rows have
	Points    []Point  `json:"points"`
	Chosen    *Chosen  `json:"chosen,omitempty"`
}

// Verdict is what the doctor says.
type Verdict struct {
	Title    string     `json:"title"`
	Head     string     `json:"head"`
	Count    int        `json:"count"`
	Findings []Finding  `json:"findings"`
	Sections []Sentence `json:"sections"`
}

// Finding is an advice, with what it speaks of.
type Finding struct {
	Text   string `json:"text"`
	Anchor string `json:"anchor"` // part of the page
	Label  *int   `json:"label"`  // number of the label, when it is about one
}

// Sentence is a section of the diagnosis.
type Sentence struct {
	Name  string   `json:"name"`
	Lines []string `json:"lines"`
}

// Now are the figures of the whole process.
type Now struct {
	Live      uint64   `json:"live"`
	Committed uint64   `json:"committed"`
	RSS       uint64   `json:"rss"`
	Objects   uint64   `json:"objects"`
	Warm      uint64   `json:"warm"`
	MaxBytes  uint64   `json:"max_bytes"`
	Limit     Limit    `json:"limit"`
	Growth    float64  `json:"growth"`
	Pace      [6]Pace  `json:"pace"` // live over 10 s, 100 s, ever; committed over the same
	Allocated *float64 `json:"allocated"`
	Slow      *float64 `json:"slow"` // share of allocations of the interval
	Open      uint64   `json:"open"`
	Draining  uint64   `json:"draining"`
	Leaking   int      `json:"leaking"`
	Refused   uint64   `json:"refused"`
	Kernel    uint64   `json:"kernel"` // failed calls
}

// Pace is bytes a second; null: not known.
type Pace = *float64

// Limit is a limit, what counts against it, and the nanoseconds to it; 0: not in sight.
type Limit struct {
	Name  string `json:"name"`
	Bytes uint64 `json:"bytes"`
	Used  uint64 `json:"used"`
	NS    uint64 `json:"ns"`
}

// Label is a row of the list of labels.
type Label struct {
	ID        int       `json:"id"`
	Name      string    `json:"name"`
	Committed uint64    `json:"committed"`
	Live      uint64    `json:"live"`
	Objects   uint64    `json:"objects"`
	Growth    float64   `json:"growth"`
	Pace      float64   `json:"pace"` // live over 10 s
	Allocated *float64  `json:"allocated"`
	Open      uint64    `json:"open"`
	Draining  uint64    `json:"draining"`
	Pinned    uint64    `json:"pinned"`
	Oldest    uint64    `json:"oldest"`
	Escaped   uint64    `json:"escaped"`
	Ages      [7]uint64 `json:"ages"` // ended phases that hold objects: to 1 s, 10 s, 1 min, 10 min, 1 h, 1 d, older
	Limit     *Limit    `json:"limit"`
}

// Phase is a row of phases.
type Phase struct {
	Label     int     `json:"label"`
	Name      string  `json:"name"`
	Era       uint64  `json:"era"`
	Open      bool    `json:"open"`
	Age       uint64  `json:"age"`
	Committed uint64  `json:"committed"`
	Live      uint64  `json:"live"`
	Objects   uint64  `json:"objects"`
	Refs      uint64  `json:"refs"`
	Limit     *uint64 `json:"limit"`
}

// Class is a row of size classes.
type Class struct {
	Name      string   `json:"name"`
	Live      uint64   `json:"live"`
	Committed uint64   `json:"committed"`
	Slabs     uint64   `json:"slabs"`
	Slow      *float64 `json:"slow"`
	Recycled  float64  `json:"recycled"`
	Waited    float64  `json:"waited"`
}

// Close is a row of ends of phases.
type Close struct {
	Name     string `json:"name"`
	Label    int    `json:"label"`
	Era      uint64 `json:"era"`
	Ago      uint64 `json:"ago"`
	Slabs    uint64 `json:"slabs"`
	Given    uint64 `json:"given"`
	Fell     int64  `json:"fell"`
	Escaped  uint64 `json:"escaped"`
	Released uint64 `json:"released"`
}

// Chosen is one label looked at closely.
type Chosen struct {
	Label
	name    string  // as the process has it
	Paces   [6]Pace `json:"paces"`
	Phases  []Phase `json:"phases"`
	More    uint64  `json:"more"` // phases of it without a row here
	Profile string  `json:"profile"`
	Sites   []Site  `json:"sites"`
	Sizes   []Site  `json:"sizes"`
}

// Site is a place in the program, or a size class, of what lives under a label by the heap profile.
type Site struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	All   int64  `json:"all"` // with what it called
}

func known(v float64, ok bool) *float64 {
	if !ok {
		return nil
	}
	return &v
}

// optionsOf is the word TSLAB_OPTIONS of the environment that a process was started with.
func optionsOf(pid int) string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	for entry := range strings.SplitSeq(string(b), "\x00") {
		if text, ok := strings.CutPrefix(entry, "TSLAB_OPTIONS="); ok {
			return units.Text(text)
		}
	}
	return ""
}

var anchors = map[string]string{"leaks": "leaks", "slow path": "causes", "reclamation": "closes", "sampling": "latency", "locks": "labels", "refusals": "verdict",
	"labels": "labels", "growth": "growth"}

// document is what a page shows of the watcher's latest reading, with the points after `since`; `chosen` is the label that is
// looked at closely, nil for none. The caller holds w.mu.
func (w *watcher) document(since int64, chosen *string, leakSeconds uint64) *Document {
	d := &Document{Pid: w.pid, Command: units.Text(w.command), Recorded: w.replay, Ended: w.ended, Next: w.next, State: "unknown", Notes: []string{}, Ignored: []string{},
		Labels: []Label{}, Oldest: []Phase{}, Open: []Phase{}, Classes: []Class{}, Closes: []Close{}, Names: [][2]any{}, Points: []Point{}}
	d.Host, d.Server = units.Text(w.host), w.colours.begun
	if !w.replay {
		d.Host, _ = os.Hostname()
		d.Options = optionsOf(w.pid)
		d.Ignored = append(d.Ignored, options.OfProcess(w.pid)...)
	}
	if w.err != nil {
		d.Error = units.Text(w.err.Error())
	}
	if w.last == nil {
		return d
	}
	i := w.last
	s := i.To
	d.At = time.Now().UnixMilli()
	if w.replay {
		d.At = s.Recorded.UnixMilli()
	}
	d.Version, d.State, d.Uptime, d.Over = units.Text(s.Document().S("version")), s.State.String(), s.Uptime().Seconds(), i.Seconds
	if w.ended {
		d.State = "ended"
	}
	if age, ok := s.Old(); ok && !w.replay {
		d.Age = known(age.Seconds(), true)
	}
	d.Notes = append(d.Notes, view.Notes(s)...)
	names := map[int]string{}
	id := func(name string) int {
		n := w.colours.of(name)
		names[n] = name
		return n
	}
	d.verdict(s, id, leakSeconds)
	d.now(i)
	d.labels(i, id)
	d.phases(s, id)
	d.classes(i)
	d.closes(s, id)
	if chosen != nil {
		d.Chosen = w.chosen(i, *chosen, id)
	}
	d.Points = append(d.Points, w.history.Since(since)...)
	if since == 0 { // a page that has just begun has to be told the labels of old points, too
		w.colours.mu.Lock()
		all := map[int]bool{}
		for _, p := range d.Points {
			for _, l := range p.Labels {
				all[l.ID] = true
			}
		}
		for name, n := range w.colours.names {
			if all[n] {
				names[n] = name
			}
		}
		w.colours.mu.Unlock()
	} else {
		for _, l := range labelsOf(i)[:min(len(i.To.Rows(metrics.Label)), pointLabels, len(labelsOf(i)))] {
			id(l.Name)
		}
	}
	for n, name := range names {
		d.Names = append(d.Names, [2]any{n, shown(name)})
	}
	slices.SortFunc(d.Names, func(a, b [2]any) int { return cmp.Compare(a[0].(int), b[0].(int)) })
	return d
}

func shown(label string) string {
	if label == "" {
		return "(unlabeled)"
	}
	return units.Text(label)
}

func (d *Document) verdict(s *snapshot.Snapshot, id func(string) int, leakSeconds uint64) {
	r := doctor.Diagnose(s, leakSeconds)
	d.Verdict = Verdict{Head: r.Head, Findings: []Finding{}, Sections: []Sentence{}}
	of := map[string]string{}
	for _, l := range s.Rows(metrics.Label) {
		of[units.Label(l.S("label"))] = l.S("label")
	}
	findings := r.Findings()
	d.Verdict.Count = len(findings)
	d.Verdict.Title, _, _ = strings.Cut(strings.TrimSuffix(doctor.Verdict(len(findings)), "."), ": ")
	for _, f := range findings[:min(len(findings), pageFindings)] {
		out := Finding{Text: f.Action, Anchor: anchors[f.Section]}
		if name, ok := of[f.Subject]; ok {
			n := id(name)
			out.Label = &n
		}
		d.Verdict.Findings = append(d.Verdict.Findings, out)
	}
	sections := func(prefix string, r *doctor.Report) {
		for _, part := range r.Sections {
			d.Verdict.Sections = append(d.Verdict.Sections, Sentence{prefix + part.Name, part.Lines})
		}
	}
	sections("", r)
	for _, p := range r.Parts {
		sections("allocator "+strconv.Itoa(int(p.Allocator))+": ", p.Report)
	}
}

func paces(r *snapshot.Row, over *snapshot.Row) [6]Pace {
	var out [6]Pace
	for n, key := range []string{"live_pace_10s", "live_pace_100s", "live_pace_ever", "committed_pace_10s", "committed_pace_100s", "committed_pace_ever"} {
		told := r.Tells(key)
		if n%3 == 0 {
			told = told && over.U("pace_10s_ns") != 0
		}
		if n%3 == 1 {
			told = told && over.U("pace_100s_ns") != 0
		}
		out[n] = known(r.F(key), told)
	}
	return out
}

func (d *Document) now(i *rates.Interval) {
	s, g := i.To, i.To.Global()
	n := &d.Now
	n.Live, n.Committed, n.RSS, n.Objects, n.Warm = g.U("live_bytes"), g.U("committed_bytes"), g.U("rss_bytes_current"), g.U("live_objects"), g.U("warm_bytes")
	n.MaxBytes, n.Growth = g.U("max_bytes"), g.F("growth_per_second")
	n.Limit = Limit{units.Text(g.S("limit_name")), g.U("limit_bytes"), g.U("limit_used_bytes"), g.U("limit_ns")}
	n.Pace = paces(g, g)
	allocated, ok := i.Of(func(s *snapshot.Snapshot) uint64 { return s.Total(metrics.Label, "objects_allocated") })
	n.Allocated = known(allocated, ok)
	slow, told := i.Of(func(s *snapshot.Snapshot) uint64 { return s.Global().U("total_slow_path_hits") })
	if ok && told && allocated > 0 {
		n.Slow = known(min(1, slow/allocated), true)
	}
	n.Open, n.Draining, n.Kernel = g.U("open_phases"), g.U("draining_phases"), g.U("total_madvise_failures")
	n.Refused = snapshot.Add(s.One(metrics.Refusal).U("out_of_memory"), s.One(metrics.Refusal).U("over_budget"))
	for _, f := range d.Verdict.Findings {
		if f.Anchor == "leaks" {
			n.Leaking++
		}
	}
}

// ageColumns are the upper ends of the columns of the heat map, in nanoseconds.
var ageColumns = [6]uint64{1e9, 10e9, 60e9, 600e9, 3600e9, 86400e9}

func ages(rows []*snapshot.Row) [7]uint64 {
	var out [7]uint64
	m := metrics.Of(metrics.Label).Find("draining_age_ns")
	for _, r := range rows {
		for n, count := range r.Array(m) {
			column := len(ageColumns)
			if n < m.Entries()-1 {
				column, _ = slices.BinarySearch(ageColumns[:], m.BucketTop(n))
			}
			out[column] += count
		}
	}
	return out
}

func (d *Document) labels(i *rates.Interval, id func(string) int) {
	list := labelsOf(i)
	for _, l := range list[:min(len(list), pageLabels)] {
		d.Labels = append(d.Labels, labelOf(i, l, id))
	}
	d.MoreLabel = len(list) - len(d.Labels) + int(i.To.Left(metrics.Label))
}

func labelOf(i *rates.Interval, l *labelSum, id func(string) int) Label {
	out := Label{ID: id(l.Name), Name: shown(l.Name), Committed: l.Committed, Live: l.Live, Allocated: known(l.Allocated, l.Allocated == l.Allocated), Ages: ages(l.Rows)}
	for _, r := range l.Rows {
		out.Objects += r.U("live_objects")
		out.Growth += r.F("growth_per_second")
		out.Pace += r.F("live_pace_10s")
		out.Open += r.U("phases_open")
		out.Draining += r.U("draining_phases")
		out.Pinned += r.U("draining_bytes")
		out.Oldest = max(out.Oldest, r.U("oldest_draining_ns"))
		out.Escaped += r.U("objects_escaped")
		if r.U("limit_bytes") != 0 {
			out.Limit = &Limit{"budget", r.U("limit_bytes"), r.U("limit_used_bytes"), r.U("limit_ns")}
		}
	}
	return out
}

func phaseOf(r *snapshot.Row, id func(string) int) Phase {
	p := Phase{Label: id(r.S("label")), Name: shown(r.S("label")), Era: r.U("epoch_era"), Open: r.U("state") == 0, Age: r.U("age_ns"),
		Committed: r.U("committed_bytes"), Live: r.U("live_bytes"), Objects: r.U("live_objects"), Refs: r.U("refcount")}
	if v := r.U("budget_hard_bytes"); v != 0 {
		p.Limit = &v
	}
	return p
}

func (d *Document) phases(s *snapshot.Snapshot, id func(string) int) {
	rows := slices.Clone(s.Rows(metrics.Phase))
	slices.SortStableFunc(rows, func(a, b *snapshot.Row) int { return cmp.Compare(b.U("age_ns"), a.U("age_ns")) })
	for _, r := range rows {
		if r.U("state") != 0 && len(d.Oldest) < pageOldest {
			d.Oldest = append(d.Oldest, phaseOf(r, id))
		}
	}
	for _, r := range doctor.OpenWithMuch(s) {
		d.Open = append(d.Open, phaseOf(r, id))
	}
}

func (d *Document) classes(i *rates.Interval) {
	hits := metrics.Of(metrics.Class).Find("slow_path_hits")
	for _, r := range i.To.Rows(metrics.Class) {
		if view.Unused(r) {
			continue
		}
		v, ok := i.Rate(r, hits)
		name := doctor.ClassName(i.To.Of(r), r)
		if a := r.AllocatorName(); a != "" {
			name += ", allocator " + a
		}
		d.Classes = append(d.Classes, Class{name, r.U("live_bytes"), r.U("committed_bytes"), r.U("net_slabs"), known(v, ok), r.F("recycle_rate_pct") / 100,
			r.F("lock_contention_pct") / 100})
	}
}

func (d *Document) closes(s *snapshot.Snapshot, id func(string) int) {
	rows := slices.Clone(s.Rows(metrics.Close))
	slices.SortStableFunc(rows, func(a, b *snapshot.Row) int { return cmp.Compare(b.U("closed_ns"), a.U("closed_ns")) })
	for _, r := range rows[:min(len(rows), pageCloses)] {
		at := s.Of(r).Document().U("figures_ns")
		d.Closes = append(d.Closes, Close{shown(r.S("label")), id(r.S("label")), r.U("epoch_era"), at - min(at, r.U("closed_ns")), r.U("slabs_returned"), r.U("bytes_madvised"),
			int64(r.U("rss_before_close") - r.U("rss_after_close")), r.U("objects_escaped"), r.U("objects_released")})
	}
}

// chosen is one label looked at closely; nil when there is none of the name.
func (w *watcher) chosen(i *rates.Interval, name string, id func(string) int) *Chosen {
	var sum *labelSum
	for _, l := range labelsOf(i) {
		if shown(l.Name) == name {
			sum = l
		}
	}
	if sum == nil {
		return nil
	}
	c := &Chosen{Label: labelOf(i, sum, id), name: sum.Name, Phases: []Phase{}, Sites: []Site{}, Sizes: []Site{}}
	c.Paces = paces(sum.Rows[0], i.To.Of(sum.Rows[0]).Global())
	var rows []*snapshot.Row
	for _, r := range i.To.Rows(metrics.Phase) {
		if r.S("label") == sum.Name {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b *snapshot.Row) int { return cmp.Compare(b.U("committed_bytes"), a.U("committed_bytes")) })
	for _, r := range rows[:min(len(rows), pagePhases)] {
		c.Phases = append(c.Phases, phaseOf(r, id))
	}
	if all := c.Open + c.Draining; all > uint64(len(c.Phases)) {
		c.More = all - uint64(len(c.Phases))
	}
	if w.replay {
		c.Profile = "A recording has no heap profile."
		return c
	}
	return c
}

// profiled is what the heap profile says of a label, kept for some seconds: names of functions take a while to be found.
type profiled struct {
	label string
	at    time.Time
	from  Chosen
}

const profileKept = 5 * time.Second

// profile fills in what the heap profile says. It may take a while: the caller does not hold w.mu.
func (w *watcher) profile(c *Chosen, i *rates.Interval, label string) {
	w.profiling.Lock()
	defer w.profiling.Unlock()
	if w.profiled.label != label || time.Since(w.profiled.at) >= profileKept {
		fresh := Chosen{Sites: []Site{}, Sizes: []Site{}}
		fresh.profile(w.pid, label, i)
		w.profiled = profiled{label, time.Now(), fresh}
	}
	c.Profile, c.Sites, c.Sizes = w.profiled.from.Profile, w.profiled.from.Sites, w.profiled.from.Sizes
}

// sizeClass is the class of the usable size of an object, whether it lies in a slab of the class or in a region.
func sizeClass(snap *snapshot.Snapshot, bytes uint64) string {
	var best *snapshot.Row
	for _, r := range snap.Rows(metrics.Class) {
		if size := r.U("object_size"); size >= bytes && (best == nil || size < best.U("object_size")) {
			best = r
		}
	}
	if best == nil {
		return "large objects"
	}
	return doctor.ClassName(snap.Of(best), best)
}

// profile fills in what the heap profile knows of the label.
func (c *Chosen) profile(pid int, label string, i *rates.Interval) {
	raw, err := segment.ReadProfile(pid, -1)
	if err != nil {
		c.Profile = "No heap profile. To see which code allocated the memory, start the process with TSLAB_OPTIONS=segment=1,profile_bytes=512k."
		return
	}
	p, err := heap.Of(raw...)
	if err != nil {
		c.Profile = units.Text(err.Error())
		return
	}
	_ = heap.Symbolize(p, pid)
	r := heap.Sum(p, heap.InuseSpace, heap.Only{Label: &label})
	c.Profile = "Estimated from samples, about one per " + units.Bytes(uint64(p.Period)) + " of allocations."
	if p.Period == 1 {
		c.Profile = "Contains every object of a domain (option escape_stacks), but no objects allocated in epochs of the ring."
	}
	for _, f := range r.Functions[:min(len(r.Functions), pageSites)] {
		c.Sites = append(c.Sites, Site{units.Text(f.Name), f.Flat, f.Cum})
	}
	sizes := map[string]int64{}
	for _, s := range p.Sample {
		if l := s.Label["label"]; len(l) != 0 && l[0] == label && len(s.NumLabel["bytes"]) != 0 {
			sizes[sizeClass(i.To, uint64(s.NumLabel["bytes"][0]))] += s.Value[heap.InuseSpace]
		}
	}
	for name, bytes := range sizes {
		c.Sizes = append(c.Sizes, Site{name, bytes, bytes})
	}
	slices.SortFunc(c.Sizes, func(a, b Site) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name)) })
}
