package cli

// profile: the heap profile of a process, as a table or for pprof.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"temporal-slab/tslab/internal/doctor"
	"temporal-slab/tslab/internal/heap"
	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/source"
	"temporal-slab/tslab/internal/table"
	"temporal-slab/tslab/internal/units"
)

type profileOptions struct {
	pid, slot, rows int
	name, file      string
	out, by         string
	label, maker    string
	stdin, names    bool
	diff, escapes   bool
}

func (a *app) profileCommand() *cobra.Command {
	var o profileOptions
	c := &cobra.Command{
		Use: "profile [--diff A B]", Short: "Show which code allocated the memory, or write a profile for pprof",
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case !o.diff:
				return noArgs(c, args)
			case len(args) != 2:
				return errors.New("profile --diff takes two files: the older and the newer profile, written by 'tslab profile -o'")
			}
			return nil
		},
		Long: `Shows the labels and functions of the sampled heap profile of a process. The process may be running or stopped, and
tslab neither signals nor slows it. With --output, profile writes a file for 'go tool pprof' that contains stacks,
sizes, classes and eras. The tag 'label' of a sample is the label of the phase; the tag 'maker' of memory that
slab_malloc_outside allocated is the label of the domain that called it. The process needs two options:
TSLAB_OPTIONS=segment=1,profile_bytes=512k takes about one sample per 512 KiB of allocations.

Names of functions come from the symbols of the mapped files. 'flat' is what a function allocated itself; 'cum'
includes the functions that it called. docs/profile.md states the accuracy of the figures. --diff shows the
difference between two profiles, the largest growth first. 'tslab flame' draws a profile as a page.`,
		Example: `  tslab profile --pid 4711
  tslab profile --pid 4711 --by alloc_space --label checkout -n 5
  tslab profile --pid 4711 --maker checkout   # allocated by slab_malloc_outside in phases of that label
  tslab profile --pid 4711 -o heap.pb.gz && go tool pprof -top -tagfocus='label=^checkout$' heap.pb.gz
  tslab profile --pid 4711 -o - | go tool pprof -http=:8080 /dev/stdin
  tslab profile --diff before.pb.gz after.pb.gz
  tslab profile --pid 4711 --escapes          # objects that outlived their phase, by stack (option escape_stacks=1)
  tslab profile --file heap.pb                # written by slab_profile_write`,
		RunE: func(c *cobra.Command, args []string) error {
			if o.diff {
				return a.profileDiff(c, o, args[0], args[1])
			}
			return a.profile(c, o)
		},
	}
	f := c.Flags()
	f.IntVar(&o.pid, "pid", 0, "read the process with this id, started with TSLAB_OPTIONS=segment=1,profile_bytes=N")
	f.StringVar(&o.name, "name", "", "read the only process of this program")
	f.IntVar(&o.slot, "allocator", -1, "with --pid or --name: read only the allocator with this number in 'tslab ls'; -1: all live allocators")
	f.StringVar(&o.file, "file", "", "read a file written by slab_profile_write or 'tslab profile -o'")
	f.BoolVar(&o.stdin, "stdin", false, "read such a file from standard input")
	f.StringVarP(&o.out, "output", "o", "", "write the profile for pprof to this file; -: to standard output")
	f.StringVar(&o.by, "by", heap.ValueNames[heap.InuseSpace], "order functions by this value: "+strings.Join(heap.ValueNames[:], ", "))
	f.StringVar(&o.label, "label", "", "show only functions that allocated in phases with this label")
	f.StringVar(&o.maker, "maker", "", "show only functions that called slab_malloc_outside in domains with this label")
	f.IntVarP(&o.rows, "rows", "n", 15, "show this many rows of each list; 0: all")
	f.BoolVar(&o.diff, "diff", false, "show the difference between two profiles; with --output, write it for pprof")
	f.BoolVar(&o.escapes, "escapes", false, "show objects that outlived their phase, by the stack that allocated them (TSLAB_OPTIONS=segment=1,escape_stacks=1)")
	f.BoolVar(&o.names, "names", true, "look up the names of functions; =false: write addresses, so that pprof looks up names and lines")
	a.formFlags(c)
	_ = c.RegisterFlagCompletionFunc("pid", completePids)
	_ = c.RegisterFlagCompletionFunc("name", completeNames)
	_ = c.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(heap.ValueNames[:], cobra.ShellCompDirectiveNoFileComp))
	_ = c.MarkFlagFilename("file")
	_ = c.MarkFlagFilename("output")
	return c
}

func (o *profileOptions) check(c *cobra.Command) (value int, err error) {
	n := 0
	for _, given := range []bool{c.Flags().Changed("pid"), o.name != "", o.file != "", o.stdin} {
		if given {
			n++
		}
	}
	value = slices.Index(heap.ValueNames[:], o.by)
	switch {
	case n == 0:
		return 0, errors.New("no heap profile to read: give one of --pid N, --name PROGRAM, --file F, --stdin ('tslab ls' lists processes)")
	case n > 1:
		return 0, errors.New("give one of --pid, --name, --file and --stdin, not several")
	case c.Flags().Changed("allocator") && (!c.Flags().Changed("pid") && o.name == "" || o.slot < 0):
		return 0, errors.New("--allocator takes 0 or more, and needs --pid or --name")
	case value < 0:
		return 0, fmt.Errorf("--by takes %s, not %q", strings.Join(heap.ValueNames[:], ", "), o.by)
	case o.rows < 0:
		return 0, errors.New("-n takes 0 or more")
	case c.Name() == "profile" && o.out != "" && shownOnly(c):
		return 0, errors.New("--output writes a profile for pprof; it cannot be combined with --json, --bytes, --label, --maker, --escapes or -n")
	}
	if o.name != "" {
		if o.pid, err = source.Named(o.name); err != nil {
			return 0, err
		}
	}
	return value, nil
}

// shownOnly says whether a flag was given that only the shown form has.
func shownOnly(c *cobra.Command) bool {
	for _, name := range []string{"json", "bytes", "label", "maker", "rows", "escapes"} {
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
		return errors.New("a profile for pprof is binary and cannot be written to a terminal; use -o FILE")
	}
	p, head, of, err := a.profileFrom(c.Context(), o)
	if err != nil {
		return err
	}
	if o.names {
		for _, line := range heap.Symbolize(p, o.pid) {
			fmt.Fprintln(a.stderr, "tslab: "+oneLine(line))
		}
	}
	if !o.names {
		heap.Trim(p)
	}
	switch {
	case o.out == "-":
		return p.Write(a.out)
	case o.out != "":
		return a.profileFile(p, o.out)
	case o.escapes:
		value = heap.EscapedObjects
	}
	if !heap.Has(p, value) {
		return errNoEscapes
	}
	var only heap.Only
	if c.Flags().Changed("label") {
		only.Label = &o.label
	}
	if o.maker != "" {
		only.Maker = &o.maker
	}
	if o.escapes {
		return a.profileEscapes(p, heap.Escapes(p, only), o, head, of)
	}
	r := heap.Sum(p, value, only)
	if a.json {
		return a.profileJSON(p, r, o, of)
	}
	a.profileText(p, r, only, o.rows, value, head)
	return nil
}

var errNoEscapes = errors.New("the profile does not contain escapes: start the process with TSLAB_OPTIONS=segment=1,escape_stacks=1 (docs/profile.md)")

// profileEscapes shows a row for each label and stack.
func (a *app) profileEscapes(p *profile.Profile, list []heap.Escape, o profileOptions, head string, of *segment.Profile) error {
	if a.json {
		out := map[string]any{"profile_bytes": p.Period, "comments": append([]string{}, p.Comments...), "escapes": cut(list, o.rows)}
		if of != nil {
			out["pid"], out["state"], out["age_seconds"] = o.pid, of.State.String(), of.Age.Seconds()
		}
		return a.writeJSON(out)
	}
	style := a.style()
	a.println(a.bold(head + ", escapes: what outlived the end of its phase, " + everyOr(p.Period)))
	for _, line := range p.Comments {
		a.println(units.Text(line))
	}
	a.println("")
	t := table.Table{Head: a.bold, Columns: []table.Column{{Title: "label", Left: true}, {Title: "escaped"}, {Title: "bytes"}, {Title: "live now"}, {Title: "bytes"}, {Title: "made by, and called by", Left: true}}}
	for _, e := range cut(list, o.rows) {
		stack := e.Stack[:min(len(e.Stack), escapeNames)]
		label := units.Text(e.Label)
		if e.Allocator != "" {
			label += " of " + e.Allocator
		}
		t.Rows = append(t.Rows, []string{label, style.Uint(metrics.Count, uint64(max(0, e.Objects))), style.Uint(metrics.Bytes, uint64(max(0, e.Bytes))),
			style.Uint(metrics.Count, uint64(max(0, e.LiveObjects))), style.Uint(metrics.Bytes, uint64(max(0, e.LiveBytes))), units.Text(strings.Join(stack, " < "))})
	}
	a.lines(t.Lines(a.width))
	a.more(len(list), len(t.Rows), "stacks")
	return nil
}

const escapeNames = 5 // of a stack; --json has all

// everyOr says what was sampled.
func everyOr(period int64) string {
	if period == 1 {
		return "each object"
	}
	return "one sample in about " + units.Bytes(uint64(period))
}

// profileFrom gets it from where it is, with words that say whose it is; `of` is what a process published, else nil.
func (a *app) profileFrom(ctx context.Context, o profileOptions) (p *profile.Profile, head string, of *segment.Profile, err error) {
	switch {
	case o.stdin:
		p, err = profileStream(ctx, a.in)
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
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s: %w", head, unwrapPath(err))
	}
	return p, head, nil, err
}

// profileStream is read beside, so that a writer that says nothing does not outlast an interrupt.
func profileStream(ctx context.Context, in io.Reader) (*profile.Profile, error) {
	type result struct {
		p   *profile.Profile
		err error
	}
	done := make(chan result, 1)
	go func() {
		p, err := heap.Parse(in)
		done <- result{p, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-done:
		return r.p, r.err
	}
}

func profileRead(path string) (*profile.Profile, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO would wait for its writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch info, err := f.Stat(); {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("is a directory")
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file; use --stdin < " + path)
	case info.Size() > heap.MaxBytes:
		return nil, fmt.Errorf("has %d MiB, but a heap profile has at most %d", info.Size()>>20, heap.MaxBytes>>20)
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

// ---- what came between two ----

func (a *app) profileDiff(c *cobra.Command, o profileOptions, before, after string) error {
	value := slices.Index(heap.ValueNames[:], o.by)
	switch {
	case c.Flags().Changed("pid") || o.name != "" || o.file != "" || o.stdin || c.Flags().Changed("label") || o.maker != "":
		return errors.New("--diff compares two whole files; it cannot be combined with --pid, --name, --file, --stdin, --label or --maker")
	case value < 0:
		return fmt.Errorf("--by takes %s, not %q", strings.Join(heap.ValueNames[:], ", "), o.by)
	case o.rows < 0:
		return errors.New("-n takes 0 or more")
	}
	if o.escapes {
		return errors.New("--escapes shows one profile; use --diff --by escaped_objects to compare two")
	}
	var both [2]*profile.Profile
	for n, path := range []string{before, after} {
		p, err := profileRead(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, unwrapPath(err))
		}
		if o.names {
			_ = heap.Symbolize(p, 0)
		}
		if !heap.Has(p, value) {
			return fmt.Errorf("%s: %w", path, errNoEscapes)
		}
		both[n] = p
	}
	if o.out != "" {
		p, err := heap.Difference(both[0], both[1])
		switch {
		case err != nil:
			return fmt.Errorf("the profiles cannot be compared: %w", err)
		case o.out == "-":
			return p.Write(a.out)
		}
		return a.profileFile(p, o.out)
	}
	from, to := heap.Sum(both[0], value, heap.Only{}), heap.Sum(both[1], value, heap.Only{})
	labels, functions := heap.Compare(from, to, value)
	if a.json {
		return a.writeJSON(map[string]any{"by": o.by, "labels": changeRows(cut(labels, o.rows)), "functions": changeRows(cut(functions, o.rows)),
			"total": map[string]int64{"before": from.Total[value], "after": to.Total[value]}})
	}
	change := func(v int64) string {
		text := a.style().Float(metrics.Unit(value%2), float64(v))
		if v > 0 {
			text = "+" + text
		}
		return text
	}
	figure := func(v int64) string { return a.style().Uint(metrics.Unit(value%2), uint64(max(0, v))) }
	a.println(a.bold(fmt.Sprintf("%s: %s before, %s after, %s", o.by, figure(from.Total[value]), figure(to.Total[value]), change(to.Total[value]-from.Total[value]))))
	a.println("")
	t := table.Table{Head: a.bold, Columns: []table.Column{{Title: "label", Left: true}, {Title: "change"}, {Title: "before"}, {Title: "after"}}}
	for _, l := range cut(labels, o.rows) {
		name := units.Text(l.Name)
		if l.Maker != "" {
			name += " made by " + units.Text(l.Maker)
		}
		t.Rows = append(t.Rows, []string{name, change(l.After - l.Before), figure(l.Before), figure(l.After)})
	}
	a.lines(t.Lines(a.width))
	a.more(len(labels), len(t.Rows), "labels")
	a.println("")
	t = table.Table{Head: a.bold, Columns: []table.Column{{Title: "function", Left: true}, {Title: "change"}, {Title: "with callees"}, {Title: "before"}, {Title: "after"}}}
	for _, f := range cut(functions, o.rows) {
		t.Rows = append(t.Rows, []string{units.Text(f.Name), change(f.After - f.Before), change(f.Cum), figure(f.Before), figure(f.After)})
	}
	a.lines(t.Lines(a.width))
	a.more(len(functions), len(t.Rows), "functions")
	return nil
}

func changeRows(list []heap.Change) []map[string]any {
	rows := []map[string]any{}
	for _, c := range list {
		row := map[string]any{"name": c.Name, "before": c.Before, "after": c.After, "change": c.After - c.Before}
		if c.Maker != "" {
			row["maker"] = c.Maker
		}
		if c.Cum != 0 {
			row["cum_change"] = c.Cum
		}
		rows = append(rows, row)
	}
	return rows
}

// ---- flame ----

func (a *app) flameCommand() *cobra.Command {
	var o profileOptions
	c := &cobra.Command{
		Use: "flame -o FILE.html", Short: "Draw which code allocated the memory, as a flame graph in one HTML file", Args: noArgs,
		Long: `Writes the sampled heap profile of a process or a file as a flame graph, in one HTML file that loads nothing else.
Labels are at the root, and each function is drawn below its caller. You can send the file to others or attach it to
a report.`,
		Example: `  tslab flame --pid 4711 -o heap.html
  tslab flame --pid 4711 -o heap.html --label checkout
  tslab flame --file heap.pb.gz -o heap.html --by alloc_space`,
		RunE: func(c *cobra.Command, _ []string) error {
			value, err := o.check(c)
			switch {
			case err != nil:
				return err
			case o.out == "":
				return errors.New("flame needs -o FILE.html, or -o - for standard output")
			}
			return a.flame(c, o, value)
		},
	}
	f := c.Flags()
	f.IntVar(&o.pid, "pid", 0, "read the process with this id, started with TSLAB_OPTIONS=segment=1,profile_bytes=N")
	f.StringVar(&o.name, "name", "", "read the only process of this program")
	f.IntVar(&o.slot, "allocator", -1, "with --pid or --name: read only the allocator with this number in 'tslab ls'; -1: all live allocators")
	f.StringVar(&o.file, "file", "", "read a file written by slab_profile_write or 'tslab profile -o'")
	f.BoolVar(&o.stdin, "stdin", false, "read such a file from standard input")
	f.StringVarP(&o.out, "output", "o", "", "write to this file; -: to standard output")
	f.StringVar(&o.by, "by", heap.ValueNames[heap.InuseSpace], "draw this value: "+strings.Join(heap.ValueNames[:], ", "))
	f.StringVar(&o.label, "label", "", "draw only phases with this label")
	f.StringVar(&o.maker, "maker", "", "draw only what slab_malloc_outside allocated in domains with this label")
	_ = c.RegisterFlagCompletionFunc("pid", completePids)
	_ = c.RegisterFlagCompletionFunc("name", completeNames)
	_ = c.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(heap.ValueNames[:], cobra.ShellCompDirectiveNoFileComp))
	_ = c.MarkFlagFilename("file")
	_ = c.MarkFlagFilename("output", "html")
	return c
}

func (a *app) flame(c *cobra.Command, o profileOptions, value int) error {
	if o.out == "-" && term.IsTerminal(a.stdout.Fd()) {
		return errors.New("flame does not write a page to a terminal; use -o FILE.html")
	}
	p, head, _, err := a.profileFrom(c.Context(), o)
	if err != nil {
		return err
	}
	for _, line := range heap.Symbolize(p, o.pid) {
		fmt.Fprintln(a.stderr, "tslab: "+oneLine(line))
	}
	if !heap.Has(p, value) {
		return errNoEscapes
	}
	var only heap.Only
	if c.Flags().Changed("label") {
		only.Label = &o.label
	}
	if o.maker != "" {
		only.Maker = &o.maker
	}
	tree := heap.Tree(p, value, only)
	if tree.Value == 0 {
		return errors.New("there is nothing to draw: no matching sample has a value")
	}
	title := fmt.Sprintf("%s, %s, %s", heap.ValueNames[value], units.Text(head), time.Now().Format(time.DateTime))
	unit := []string{"count", "bytes"}[value%2]
	if o.out == "-" {
		return heap.Flame(a.out, tree, title, unit)
	}
	f, err := os.OpenFile(o.out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w", o.out, unwrapPath(err))
	}
	err = heap.Flame(f, tree, title, unit)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.out, unwrapPath(err))
	}
	a.println(fmt.Sprintf("%s: open it in a browser", units.Text(o.out)))
	return nil
}

// ---- as text and JSON ----

func (a *app) profileText(p *profile.Profile, r *heap.Report, only heap.Only, rows, value int, head string) {
	style := a.style()
	figure := func(k int, v int64) string { return style.Uint(metrics.Unit(k%2), uint64(max(0, v))) }
	head += fmt.Sprintf(", heap profile: %s, %d in use", everyOr(p.Period), r.InUse)
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
	if len(r.Functions) == 0 && (only.Label != nil || only.Maker != nil) {
		a.println("no sample matches")
	}
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
