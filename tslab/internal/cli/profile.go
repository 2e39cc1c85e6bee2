package cli

// profile: the heap profile of a process, as a table or for pprof.

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"temporal-slab/tslab/internal/doctor"
	"temporal-slab/tslab/internal/heap"
	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/table"
	"temporal-slab/tslab/internal/units"
)

type profileOptions struct {
	pid, slot, rows int
	file, out, by   string
	label, maker    string
	stdin, names    bool
}

func (a *app) profileCommand() *cobra.Command {
	var o profileOptions
	c := &cobra.Command{
		Use: "profile", Short: "Show which code holds the memory, or write it for pprof", Args: noArgs,
		Long: `Fetches the sampled heap profile of a running or stopped process, which is neither signalled nor slowed, and shows
labels and functions; with --output it writes a profile that 'go tool pprof' opens: stacks, sizes, classes and eras,
with the label of the phase as the tag 'label', and of what slab_malloc_outside made the label of the scope that made it
as 'maker'. The process needs two options:
TSLAB_OPTIONS=segment=1,profile_bytes=512k takes one sample in about 512 KiB of allocations.

Names of functions come from the symbols of the mapped files. 'flat' is what a function allocated itself, 'cum' with all
that it called. docs/profile.md says how exact the figures are.`,
		Example: `  tslab profile --pid 4711
  tslab profile --pid 4711 --by alloc_space --label checkout -n 5
  tslab profile --pid 4711 --maker checkout   # what outlives the phases of that label
  tslab profile --pid 4711 -o heap.pb.gz && go tool pprof -top -tagfocus='label=^checkout$' heap.pb.gz
  tslab profile --pid 4711 -o - | go tool pprof -http=:8080 /dev/stdin
  tslab profile --file heap.pb                # as slab_profile_write wrote it`,
		RunE: func(c *cobra.Command, _ []string) error { return a.profile(c, o) },
	}
	f := c.Flags()
	f.IntVar(&o.pid, "pid", 0, "read the process with this id (it runs with TSLAB_OPTIONS=segment=1,profile_bytes=N)")
	f.IntVar(&o.slot, "allocator", -1, "with --pid: read this one of its allocators, as 'tslab ls' numbers them; -1: all that live")
	f.StringVar(&o.file, "file", "", "read a file that slab_profile_write or 'tslab profile -o' wrote")
	f.BoolVar(&o.stdin, "stdin", false, "read such a file from standard input")
	f.StringVarP(&o.out, "output", "o", "", "write the profile for pprof to this file; -: to standard output")
	f.StringVar(&o.by, "by", heap.ValueNames[heap.InuseSpace], "order functions by this value: "+strings.Join(heap.ValueNames[:], ", "))
	f.StringVar(&o.label, "label", "", "show functions of phases with this label only")
	f.StringVar(&o.maker, "maker", "", "show functions of what scopes with this label made by slab_malloc_outside only")
	f.IntVarP(&o.rows, "rows", "n", 15, "show so many rows of a list; 0: all")
	f.BoolVar(&o.names, "names", true, "look for the names of functions; =false: write addresses, and pprof looks for names and lines")
	a.formFlags(c)
	_ = c.RegisterFlagCompletionFunc("pid", completePids)
	_ = c.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(heap.ValueNames[:], cobra.ShellCompDirectiveNoFileComp))
	_ = c.MarkFlagFilename("file")
	_ = c.MarkFlagFilename("output")
	return c
}

func (o *profileOptions) check(c *cobra.Command) (value int, err error) {
	n := 0
	for _, given := range []bool{c.Flags().Changed("pid"), o.file != "", o.stdin} {
		if given {
			n++
		}
	}
	value = slices.Index(heap.ValueNames[:], o.by)
	switch {
	case n == 0:
		return 0, errors.New("whose heap profile? Give one of --pid N, --file F, --stdin ('tslab ls' lists processes)")
	case n > 1:
		return 0, errors.New("give one of --pid, --file and --stdin, not several")
	case c.Flags().Changed("allocator") && (!c.Flags().Changed("pid") || o.slot < 0):
		return 0, errors.New("--allocator takes a number from 0 and goes with --pid only")
	case value < 0:
		return 0, fmt.Errorf("--by takes %s, not %q", strings.Join(heap.ValueNames[:], ", "), o.by)
	case o.rows < 0:
		return 0, errors.New("-n takes 0 or more")
	case o.out != "" && shownOnly(c):
		return 0, errors.New("--output writes for pprof; --json, --bytes, --label, --maker and -n are for what is shown without it")
	}
	return value, nil
}

// shownOnly says whether a flag was given that only the shown form has.
func shownOnly(c *cobra.Command) bool {
	for _, name := range []string{"json", "bytes", "label", "maker", "rows"} {
		if c.Flags().Changed(name) {
			return true
		}
	}
	return false
}

func (a *app) profile(c *cobra.Command, o profileOptions) error {
	value, err := o.check(c)
	if err != nil {
		return err
	}
	if o.out == "-" && term.IsTerminal(a.stdout.Fd()) {
		return errors.New("a profile for pprof is no text for a terminal; use -o FILE")
	}
	p, head, of, err := a.profileFrom(o)
	if err != nil {
		return err
	}
	if o.names {
		for _, line := range heap.Symbolize(p, o.pid) {
			fmt.Fprintln(a.stderr, "tslab: "+oneLine(line))
		}
	}
	switch {
	case o.out == "-":
		return p.Write(a.out)
	case o.out != "":
		return a.profileFile(p, o.out)
	}
	var only heap.Only
	if c.Flags().Changed("label") {
		only.Label = &o.label
	}
	if o.maker != "" {
		only.Maker = &o.maker
	}
	r := heap.Sum(p, value, only)
	if a.json {
		return a.profileJSON(p, r, o, of)
	}
	a.profileText(p, r, only, o.rows, value, head)
	return nil
}

// profileFrom gets it from where it is, with words that say whose it is; `of` is what a process published, else nil.
func (a *app) profileFrom(o profileOptions) (p *profile.Profile, head string, of *segment.Profile, err error) {
	switch {
	case o.stdin:
		p, err = heap.Parse(a.in)
		head = "standard input"
	case o.file != "":
		p, err = profileRead(o.file)
		head = o.file
	default:
		raw, err := segment.ReadProfile(o.pid, o.slot)
		if err != nil {
			return nil, "", nil, err
		}
		first := raw[0]
		head := fmt.Sprintf("pid %d, %s", o.pid, first.State)
		for _, r := range raw {
			first.Age = max(first.Age, r.Age)
		}
		if len(raw) > 1 {
			head += fmt.Sprintf(", %d allocators", len(raw))
		}
		p, err := heap.Of(raw...)
		return p, head + fmt.Sprintf(", figures of %s ago", units.Duration(first.Age)), first, err
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", head, unwrapPath(err))
	}
	return p, head, nil, err
}

func profileRead(path string) (*profile.Profile, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO would wait for its writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch info, err := f.Stat(); {
	case err != nil || !info.Mode().IsRegular():
		return nil, errors.New("is no regular file; use --stdin < " + path)
	case info.Size() > heap.MaxBytes:
		return nil, fmt.Errorf("has %d MiB, and a heap profile has %d at most", info.Size()>>20, heap.MaxBytes>>20)
	}
	return heap.Parse(f)
}

func (a *app) profileFile(p *profile.Profile, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NONBLOCK, 0o600) // a FIFO without a reader is an error
	if err != nil {
		return fmt.Errorf("%s: %w", path, unwrapPath(err))
	}
	err = p.Write(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, unwrapPath(err))
	}
	a.println(doctor.Singular(fmt.Sprintf("%d samples in ", len(p.Sample))) + fmt.Sprintf("%s; look: go tool pprof -top %s", units.Text(path), units.Text(path)))
	return nil
}

// ---- as text and JSON ----

func (a *app) profileText(p *profile.Profile, r *heap.Report, only heap.Only, rows, value int, head string) {
	style := a.style()
	figure := func(k int, v int64) string { return style.Uint(metrics.Unit(k%2), uint64(max(0, v))) }
	head += fmt.Sprintf(", heap profile: one sample in about %s, %d in use", units.Bytes(uint64(p.Period)), r.InUse)
	a.println(a.bold(head))
	a.println(fmt.Sprintf("in use %s, allocated %s", figure(heap.InuseSpace, r.Total[heap.InuseSpace]), figure(heap.AllocSpace, r.Total[heap.AllocSpace])))
	for _, line := range p.Comments {
		a.println(units.Text(line))
	}
	a.println("")
	t := table.Table{Head: a.bold, Columns: []table.Column{{Title: "label", Left: true}}}
	if r.Made {
		t.Columns = append(t.Columns, table.Column{Title: "made by", Left: true})
	}
	if r.Several {
		t.Columns = append(t.Columns, table.Column{Title: "allocator"})
	}
	t.Columns = append(t.Columns, []table.Column{{Title: "in use"}, {Title: "share"}, {Title: "objects"}, {Title: "allocated"}, {Title: "objects"}}...)
	for _, l := range cut(r.Labels, rows) {
		cells := []string{units.Text(l.Name)}
		if r.Made {
			cells = append(cells, units.Text(l.Maker))
		}
		if r.Several {
			cells = append(cells, l.Allocator)
		}
		t.Rows = append(t.Rows, append(cells, figure(heap.InuseSpace, l.Values[heap.InuseSpace]), share(l.Values[heap.InuseSpace], r.Total[heap.InuseSpace]),
			figure(heap.InuseObjects, l.Values[heap.InuseObjects]), figure(heap.AllocSpace, l.Values[heap.AllocSpace]), figure(heap.AllocObjects, l.Values[heap.AllocObjects])))
	}
	a.lines(t.Lines(a.width))
	a.more(len(r.Labels), len(t.Rows), "labels")
	a.println("")
	title, whole := heap.ValueNames[value], int64(0)
	if only.Label != nil {
		title += " of " + units.Label(*only.Label)
	}
	if only.Maker != nil {
		title += " made by " + units.Label(*only.Maker)
	}
	for _, l := range r.Labels {
		if only.Has(&l) {
			whole += l.Values[value]
		}
	}
	t = table.Table{Head: a.bold, Columns: []table.Column{{Title: "function (" + title + ")", Left: true}, {Title: "flat"}, {Title: "share"}, {Title: "cum"}, {Title: "share"}}}
	for _, f := range cut(r.Functions, rows) {
		t.Rows = append(t.Rows, []string{units.Text(f.Name), figure(value, f.Flat), share(f.Flat, whole), figure(value, f.Cum), share(f.Cum, whole)})
	}
	a.lines(t.Lines(a.width))
	a.more(len(r.Functions), len(t.Rows), "functions")
}

func share(part, whole int64) string {
	return units.Percent(uint64(max(0, part)), uint64(max(0, whole)))
}

func cut[T any](list []T, most int) []T {
	if most == 0 || most > len(list) {
		return list
	}
	return list[:most]
}

func (a *app) more(all, shown int, what string) {
	left := all - shown
	if left == 1 {
		what = strings.TrimSuffix(what, "s")
	}
	if left > 0 {
		a.println(fmt.Sprintf("and %d more %s: -n 0", left, what))
	}
}

type labelRow struct {
	Label        string `json:"label"`
	Maker        string `json:"maker,omitempty"`
	Allocator    string `json:"allocator,omitempty"`
	AllocObjects int64  `json:"alloc_objects"`
	AllocSpace   int64  `json:"alloc_space"`
	InuseObjects int64  `json:"inuse_objects"`
	InuseSpace   int64  `json:"inuse_space"`
}

func rowOf(l heap.Label) labelRow {
	v := l.Values
	return labelRow{l.Name, l.Maker, l.Allocator, v[heap.AllocObjects], v[heap.AllocSpace], v[heap.InuseObjects], v[heap.InuseSpace]}
}

func (a *app) profileJSON(p *profile.Profile, r *heap.Report, o profileOptions, of *segment.Profile) error {
	total := rowOf(heap.Label{Values: r.Total})
	out := map[string]any{"profile_bytes": p.Period, "samples_in_use": r.InUse, "comments": append([]string{}, p.Comments...), "by": o.by,
		"functions": append([]heap.Function{}, cut(r.Functions, o.rows)...),
		"total":     map[string]int64{"alloc_objects": total.AllocObjects, "alloc_space": total.AllocSpace, "inuse_objects": total.InuseObjects, "inuse_space": total.InuseSpace}}
	labels := []labelRow{}
	for _, l := range cut(r.Labels, o.rows) {
		labels = append(labels, rowOf(l))
	}
	out["labels"] = labels
	if of != nil {
		out["pid"], out["state"], out["age_seconds"] = o.pid, of.State.String(), of.Age.Seconds()
	}
	return a.writeJSON(out)
}
