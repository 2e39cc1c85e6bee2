package cli

// ls, stats, doctor, diff, export: one reading, one answer.

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"temporal-slab/tslab/internal/diff"
	"temporal-slab/tslab/internal/doctor"
	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/prom"
	"temporal-slab/tslab/internal/rates"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/source"
	"temporal-slab/tslab/internal/table"
	"temporal-slab/tslab/internal/units"
	"temporal-slab/tslab/internal/view"
)

func (a *app) writeJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// ---- ls ----

func (a *app) lsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "ls", Short: "List the processes whose statistics tslab can read", Args: noArgs,
		Long: `Lists the processes of this user (for root: of all users) that publish their statistics. Each line shows an
allocator: whether its process is running or stopped, or the allocator has ended, and the age of its figures. A
process publishes its statistics if it was started with TSLAB_OPTIONS=segment=1, or if it created its allocator with
the option 'segment'.`,
		Example: "  TSLAB_OPTIONS=segment=1 ./server &\n  tslab ls\n  tslab ls --json | jq -r '.[].pid'",
		RunE:    func(*cobra.Command, []string) error { return a.ls() },
	}
	a.formFlags(c)
	return c
}

type lsRow struct {
	Pid       int     `json:"pid"`
	Command   string  `json:"command"`
	Allocator int     `json:"allocator"`
	State     string  `json:"state"`
	Age       float64 `json:"age_seconds"`
	Changed   bool    `json:"changed_since"`
	Live      uint64  `json:"live_bytes"`
	Committed uint64  `json:"committed_bytes"`
	Phases    uint64  `json:"open_phases"`
	Readable  bool    `json:"readable"`
	age       string
}

func (a *app) ls() error {
	list, err := segment.List()
	if err != nil {
		return err
	}
	rows := []lsRow{}
	for _, p := range list {
		for _, s := range p.Allocators {
			rows = append(rows, lsOne(p, s))
		}
		p.Segment.Close()
	}
	for _, p := range segment.ListIgnoring() {
		fmt.Fprintf(a.stderr, "pid %d (%s): ignored in its TSLAB_OPTIONS: %s\n", p.Pid, units.Text(p.Command), units.Text(strings.Join(p.Words, "; ")))
	}
	if a.json {
		return a.writeJSON(rows)
	}
	if len(rows) == 0 {
		fmt.Fprintln(a.stderr, "No process shows statistics. Start a program with TSLAB_OPTIONS=segment=1 in its environment."+ofOthers())
		return nil
	}
	style := a.style()
	t := table.Table{Head: a.bold, Columns: []table.Column{{Title: "pid"}, {Title: "command", Left: true}, {Title: "allocator"}, {Title: "state", Left: true},
		{Title: "committed"}, {Title: "live"}, {Title: "open phases"}, {Title: "figures of", Left: true}}}
	for _, r := range rows {
		cells := []string{strconv.Itoa(r.Pid), r.Command, strconv.Itoa(r.Allocator), r.State, "-", "-", "-", "-"}
		if r.Readable {
			cells[4], cells[5], cells[6], cells[7] = style.Uint(1, r.Committed), style.Uint(1, r.Live), style.Uint(0, r.Phases), r.age+" ago"
			if r.Changed && r.Age >= snapshot.Latest.Seconds() {
				cells[7] += ", changed since"
			}
		}
		t.Rows = append(t.Rows, cells)
	}
	a.lines(t.Lines(a.width))
	return nil
}

func lsOne(p segment.Process, s segment.Allocator) lsRow {
	r := lsRow{Pid: p.Pid, Command: units.Text(p.Command), Allocator: s.Slot, State: snapshot.Ended.String(), age: units.Duration(s.Age), Age: s.Age.Seconds(), Changed: s.Live && s.Changed}
	if s.Live {
		r.State = p.State.String()
	}
	if snap, err := p.Segment.Read(s.Slot); err == nil {
		g := snap.Global()
		r.Readable, r.Live, r.Committed, r.Phases = true, g.U("live_bytes"), g.U("committed_bytes"), g.U("open_phases")
	}
	return r
}

func (a *app) lines(lines []string) {
	for _, l := range lines {
		a.println(l)
	}
}

// ofOthers says that a user does not see the processes of others, where there may be some.
func ofOthers() string {
	if os.Geteuid() == 0 {
		return ""
	}
	return " Processes of other users are not shown: run tslab as that user or as root."
}

// ---- stats ----

func (a *app) statsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "stats", Short: "Show the most important figures of one moment", Args: noArgs,
		Long: `Shows the most important figures, and the labels and classes that hold the most memory. With --json, stats writes
the whole document, like slab_stats_json in the program (schema: 'tslab schema'), so you can keep the document and
compare it later.`,
		Example: `  tslab stats --pid 4711
  tslab stats --pid 4711 --json > before.json
  tslab-stats-dump --no-text | tslab stats --stdin
  tslab stats --url http://127.0.0.1:8080`,
		RunE: func(c *cobra.Command, _ []string) error {
			i, err := a.once(c)
			if err != nil {
				return err
			}
			if a.json {
				return i.To.WriteJSON(a.out)
			}
			a.stats(i)
			return nil
		},
	}
	a.sourceFlags(c)
	a.formFlags(c)
	return c
}

func (a *app) notes(s *snapshot.Snapshot) {
	for _, line := range view.Notes(s) {
		a.println(line)
	}
}

const statsRows = 5 // of each list

func (a *app) stats(i *rates.Interval) {
	a.lines(a.cut(a.bold(view.Head(i.To))))
	for _, f := range view.Summary(i.To, a.style()) {
		a.println(fmt.Sprintf("%-10s %s", f.Name, f.Text))
	}
	for _, w := range i.To.Ignored {
		a.println(units.Text("ignored    in TSLAB_OPTIONS: " + w))
	}
	a.notes(i.To)
	if t := view.Allocators(i.To, a.style()); t != nil {
		t.Head = a.bold
		a.println("")
		a.lines(t.Lines(a.width))
	}
	for _, name := range []string{"labels", "classes"} {
		l := view.Find(name)
		m, _, _ := l.Metric(l.By)
		a.println("")
		o := view.Order{Metric: m, Most: statsRows}
		t := l.Table(i, o, a.style(), false)
		t.Head = a.bold
		a.lines(t.Lines(a.width))
		if rows, _ := l.Count(i.To, o); rows > statsRows {
			a.println(fmt.Sprintf("and %d more: tslab top --%s", rows-statsRows, name))
		}
	}
}

// ---- doctor ----

func (a *app) doctorCommand() *cobra.Command {
	var leakSeconds uint64
	c := &cobra.Command{
		Use: "doctor", Short: "Show what is wrong and what to do", Args: noArgs,
		Long: fmt.Sprintf(`Reads one snapshot and reports in eight sections what needs attention: leaks, slow path, reclamation, sampled times,
locks, refused calls, labels, growth. A line that starts with ACTION says what to do. The diagnosis is that of
slab_doctor in the program, as far as a snapshot contains the data: leaks are listed by label, not by label and
class.

Exit codes: 1 if there is an ACTION, 0 if there is none, 2 if nothing could be read.

Thresholds: an ended phase is a leak if it still holds objects at the age of %d s (--leak-age). Locks: the share
of acquisitions that wait is good below %d %%, normal below %d %%, and worth watching up to %d %%; a larger
share calls for action. Fewer than %d acquisitions are not judged. Retries per free: %g, %g and %g in the same
way. A cause of the slow path prevails above %d %%; classes with fewer than %d hits get no advice. A verdict on
fewer than %d samples is a hint without an ACTION. The kernel kept the pages of a close if at least %s were
given back and RSS fell by less than a tenth of that. A label grows if its live memory has grown by at least %s
and by at least %d %% of what was live before. A limit is near if it will be reached within %d s.`, doctor.LeakSeconds, doctor.LockGood, doctor.LockNormal,
			doctor.LockWatch, doctor.FewLocks, doctor.RetryGood, doctor.RetryNormal, doctor.RetryWatch, doctor.Prevails, doctor.FewHits,
			doctor.FewSamples, units.Bytes(doctor.KeptMinBytes), units.Bytes(doctor.GrowthLeast),
			doctor.GrowthShare, doctor.LimitSoon),
		Example: `  tslab doctor --pid 4711
  tslab doctor --pid 4711 --leak-age 5      # phases here drain within five seconds
  tslab doctor --file stats.json --json | jq -r '.findings[].action'
  tslab doctor --url http://127.0.0.1:8080 >report.txt || mail -s "allocator" me <report.txt`,
		RunE: func(c *cobra.Command, _ []string) error {
			i, err := a.once(c)
			if err != nil {
				return err
			}
			return a.doctor(i.To, leakSeconds)
		},
	}
	a.sourceFlags(c)
	c.Flags().BoolVar(&a.json, "json", false, "print JSON instead of text")
	c.Flags().Uint64Var(&leakSeconds, "leak-age", doctor.LeakSeconds, "report ended phases that still hold objects as leaks from this age in seconds")
	return c
}

func (a *app) doctor(snap *snapshot.Snapshot, leakSeconds uint64) error {
	r := doctor.Diagnose(snap, leakSeconds)
	r.Head += view.Fresh(snap)
	for _, note := range view.Notes(snap) {
		r.Head += "\n" + note
	}
	findings := r.Findings()
	if a.json {
		err := a.writeJSON(answer(snap, doctorJSON(r, findings)))
		if err != nil {
			return err
		}
	} else {
		var text strings.Builder
		r.Write(&text, func(line string) string { return a.paint("1;33", "ACTION:") + strings.TrimPrefix(line, "ACTION:") })
		for line := range strings.Lines(text.String()) {
			fmt.Fprintln(a.out, hanging(strings.TrimSuffix(line, "\n"), a.width))
		}
	}
	if len(findings) != 0 {
		return errFinding
	}
	return nil
}

// doctorJSON has the sections of the allocator; of several, the sections of each.
func doctorJSON(r *doctor.Report, findings []doctor.Finding) map[string]any {
	out := map[string]any{"healthy": len(findings) == 0, "findings": findings}
	if len(r.Parts) == 0 {
		out["sections"] = r.Sections
		return out
	}
	var parts []map[string]any
	for _, p := range r.Parts {
		parts = append(parts, map[string]any{"allocator": p.Allocator, "healthy": len(p.Report.Findings()) == 0, "sections": p.Report.Sections})
	}
	out["by_allocator"] = parts
	return out
}

// ---- diff ----

func (a *app) diffCommand() *cobra.Command {
	limits := diff.Defaults
	failOn, runs, between := "regression", false, 10*time.Second
	c := &cobra.Command{
		Use: "diff A B | diff --pid N", Short: "Compare two moments, or two documents, and find regressions", DisableFlagsInUseLine: true,
		Long: `Compares two moments of a process, or with --runs two runs of a program. A is the older and B the newer one; each is
a document, or a moment FILE@TIME of a recording made by 'tslab record'. With --pid or --name, diff compares the
process now and --for later. The output begins with the process and the time of each moment, and shows how much
figures changed per second in between. diff compares two processes only with --runs.

These changes are regressions:
` + diff.Explain() + `

The exit code is 1 if there is a regression, unless --fail-on is 'never'.`,
		Example: `  tslab diff --name server --for 30s
  tslab diff before.json after.json
  tslab diff night.rec@02:00 night.rec@03:00
  tslab diff --runs main.json branch.json --growth 5 --time-growth 10
  tslab diff a.json b.json --fail-on never --json | jq '.entries[] | select(.regressed)'`,
		Args: func(c *cobra.Command, args []string) error {
			switch live := ofProcess(c); {
			case live && len(args) != 0:
				return errors.New("diff takes a process or two files, not both")
			case !live && len(args) != 2:
				return errors.New("diff takes two files: the older and the newer document, or FILE@TIME of a recording; or a process: --pid N, --name PROGRAM")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if failOn != "regression" && failOn != "never" {
				return fmt.Errorf("--fail-on takes regression or never, not %q", failOn)
			}
			if !(limits.Growth >= 0 && limits.Points >= 0 && limits.TimeGrowth >= 0) {
				return errors.New("--growth, --points and --time-growth take 0 or more")
			}
			if between <= 0 {
				return errors.New("--for takes more than 0")
			}
			before, after, err := a.twoMoments(c, args, between)
			if err != nil {
				return err
			}
			of := momentsOf(before, after)
			if of.other != "" && !runs {
				return fmt.Errorf("%s; use --runs to compare two runs of a program", of.other)
			}
			return a.diff(diff.Compare(before, after, limits), of, rates.Same(before, after), failOn == "regression")
		},
	}
	f := c.Flags()
	f.Float64Var(&limits.Growth, "growth", limits.Growth, "allow memory and refusals to grow by this many percent")
	f.Uint64Var(&limits.LeastBytes, "least-bytes", limits.LeastBytes, "always allow memory to grow by this many bytes")
	f.Float64Var(&limits.Points, "points", limits.Points, "allow shares to get worse by this many percentage points")
	f.Float64Var(&limits.TimeGrowth, "time-growth", limits.TimeGrowth, "allow the time of an allocation to grow by this many percent")
	f.BoolVar(&runs, "runs", false, "compare two processes, such as two runs of a program")
	f.IntVar(&a.choice.Pid, "pid", 0, "compare the statistics of this process now and --for later")
	f.StringVar(&a.choice.Name, "name", "", "compare the statistics of the only process of this program now and --for later")
	f.DurationVar(&between, "for", between, "with --pid or --name: wait this long between the two moments")
	a.choice.Slot = -1
	_ = c.RegisterFlagCompletionFunc("pid", completePids)
	_ = c.RegisterFlagCompletionFunc("name", completeNames)
	f.StringVar(&failOn, "fail-on", failOn, "exit with code 1 if there is a regression, or never")
	a.formFlags(c)
	return c
}

// ofProcess says whether the command line names a process.
func ofProcess(c *cobra.Command) bool { return c.Flags().Changed("pid") || c.Flags().Changed("name") }

// twoMoments reads two files, or a process twice.
func (a *app) twoMoments(c *cobra.Command, args []string, between time.Duration) (before, after *snapshot.Snapshot, err error) {
	if !ofProcess(c) {
		if before, err = source.ReadFile(args[0]); err == nil {
			after, err = source.ReadFile(args[1])
		}
		return before, after, err
	}
	src, err := a.open(c)
	if err != nil {
		return nil, nil, err
	}
	defer src.Close()
	if before, err = src.Next(c.Context()); err != nil {
		return nil, nil, err
	}
	select {
	case <-c.Context().Done():
		return nil, nil, c.Context().Err()
	case <-time.After(between):
	}
	after, err = src.Next(c.Context())
	return before, after, err
}

// moments are whose two documents are, and of when.
type moments struct {
	a, b    string
	seconds float64 // between them, in one process; 0: none
	other   string  // why they are not of one process
	pids    [2]uint64
	times   [2]uint64
}

// momentsOf tells the moments of one process from those of two: one has the same id, and began at the same time.
func momentsOf(a, b *snapshot.Snapshot) moments {
	x, y := a.Document(), b.Document()
	m := moments{pids: [2]uint64{a.Pid(), b.Pid()}, times: [2]uint64{x.U("timestamp_ns"), y.U("timestamp_ns")}}
	born := func(r *snapshot.Row) float64 { return (float64(r.U("timestamp_ns")) - float64(r.U("uptime_ns"))) / 1e9 }
	switch {
	case x.U("pid") != y.U("pid") || a.Pid() != b.Pid():
		m.other = fmt.Sprintf("the documents are from two processes, %d and %d", a.Pid(), b.Pid())
	case math.Abs(born(x)-born(y)) > sameStart:
		m.other = fmt.Sprintf("the documents are from two allocators: pid %d began a new one in between", a.Pid())
	case y.U("uptime_ns") < x.U("uptime_ns"):
		m.other = "the first document is newer than the second"
	default:
		m.seconds = float64(y.U("uptime_ns")-x.U("uptime_ns")) / 1e9
	}
	word := func(s *snapshot.Snapshot) string {
		text := fmt.Sprintf("pid %d", s.Pid())
		if t, ok := s.Time(); ok {
			text += ", " + t.Format(time.DateTime)
		}
		return text + ", up " + units.Duration(s.Uptime())
	}
	m.a, m.b = word(a), word(b)
	if m.seconds != 0 {
		m.b += ", " + units.Duration(time.Duration(m.seconds*1e9)) + " later"
	}
	return m
}

// interval is the time between them; nil in two processes.
func (m moments) interval() *float64 {
	if m.other != "" {
		return nil
	}
	return &m.seconds
}

// sameStart is by how many seconds two documents may differ in when the allocator was made: clocks are set.
const sameStart = 5

type diffRow struct {
	Name      string   `json:"name"`
	Before    *float64 `json:"before"`
	After     *float64 `json:"after"`
	PerSecond *float64 `json:"per_second"`
	Regressed bool     `json:"regressed"`
	Why       string   `json:"why,omitempty"`
}

func (a *app) diff(list []diff.Entry, between moments, same, fail bool) error {
	regressed := 0
	rows := []diffRow{}
	if !a.json {
		a.println("A: " + between.a)
		a.println("B: " + between.b)
	}
	t := table.Table{Head: a.bold, Columns: []table.Column{{Title: "figure", Left: true}, {Title: "before"}, {Title: "after"}, {Title: "change"}, {Title: "per second"}, {Title: "verdict", Left: true}}}
	for _, e := range list {
		row := diffRow{Name: e.Name, Regressed: e.Regressed, Why: e.Why}
		cells := []string{e.Name, "-", "-", e.Change(), "-", ""}
		if e.Known {
			row.Before, row.After = &e.A, &e.B
			cells[1], cells[2] = a.style().Float(e.Unit, e.A), a.style().Float(e.Unit, e.B)
		}
		if moves := e.Unit == metrics.Bytes || e.Unit == metrics.Count; e.Known && moves && between.seconds != 0 {
			v := (e.B - e.A) / between.seconds
			row.PerSecond = &v
			cells[4] = a.style().Rate(e.Unit, v)
		}
		if e.Regressed {
			regressed++
			cells[5] = "REGRESSION: " + e.Why
		}
		rows = append(rows, row)
		t.Rows = append(t.Rows, cells)
	}
	if a.json {
		if err := a.writeJSON(map[string]any{"regressions": regressed, "same_publication": same, "entries": rows, "pids": between.pids,
			"timestamps_ns": between.times, "interval_seconds": between.interval()}); err != nil {
			return err
		}
	} else {
		a.lines(t.Lines(a.width))
		switch {
		case regressed == 0 && same:
			a.println("Both documents contain the same publication of one process, so there is no time between them to compare.")
		case regressed == 0:
			a.println("Nothing regressed.")
		case regressed == 1:
			a.println("1 figure regressed.")
		default:
			a.println(fmt.Sprintf("%d figures regressed.", regressed))
		}
	}
	if regressed != 0 && fail {
		return errFinding
	}
	return nil
}

// ---- export ----

func (a *app) exportCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "export", Short: "Write the figures in the format of another system",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("export takes the name of a format: prometheus")
			}
			return fmt.Errorf("unknown format %q; the only format is prometheus", args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	open := false
	p := &cobra.Command{
		Use: "prometheus", Short: "Write the Prometheus text format", Args: noArgs,
		Long: `Writes the series that slab_stats_prometheus writes in the program, for the textfile collector of the node exporter
or for promtool. docs/metrics.md explains each series. If a histogram has no sum of its own, each of its values
counts as the middle of its bucket.`,
		Example: `  tslab export prometheus --pid 4711 | promtool check metrics
  tslab export prometheus --pid 4711 > /var/lib/node_exporter/tslab.prom.new &&
      mv /var/lib/node_exporter/tslab.prom.new /var/lib/node_exporter/tslab.prom`,
		RunE: func(c *cobra.Command, _ []string) error {
			i, err := a.once(c)
			if err != nil {
				return err
			}
			if a.json {
				return a.exportJSON(i.To)
			}
			return prom.Write(a.out, i.To, open)
		},
	}
	a.sourceFlags(p)
	p.Flags().BoolVar(&open, "openmetrics", false, "write OpenMetrics 1.0 instead of the text format")
	p.Flags().BoolVar(&a.json, "json", false, "write the series as a JSON list")
	c.AddCommand(p)
	return c
}

type series struct {
	Name   string            `json:"name"`
	Type   string            `json:"type"`
	Labels map[string]string `json:"labels"`
	Value  *float64          `json:"value,omitempty"` // of a histogram: its count
}

func (a *app) exportJSON(snap *snapshot.Snapshot) error {
	families, err := prom.Registry(snap).Gather()
	if err != nil {
		return fmt.Errorf("the snapshot does not produce valid series: %w", err)
	}
	list := []series{}
	for _, f := range families {
		for _, m := range f.Metric {
			s := series{Name: f.GetName(), Type: strings.ToLower(f.GetType().String()), Labels: map[string]string{}}
			for _, l := range m.Label {
				s.Labels[l.GetName()] = l.GetValue()
			}
			v := m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue() + float64(m.GetHistogram().GetSampleCount())
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				s.Value = &v
			}
			list = append(list, s)
		}
	}
	return a.writeJSON(list)
}
