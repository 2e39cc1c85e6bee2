package cli

// top and watch: several readings, as lines or on a screen.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/rates"
	"temporal-slab/tslab/internal/screen"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/source"
	"temporal-slab/tslab/internal/view"
)

// interactive says whether there is somebody to look and to press keys.
func (a *app) interactive(plain bool) bool {
	return !plain && !a.json && !a.choice.Stdin && a.terminal && term.IsTerminal(a.in.Fd()) && os.Getenv("TERM") != "dumb"
}

// ---- watch ----

func (a *app) watchCommand() *cobra.Command {
	count, plain := 0, false
	var keys []string
	for _, f := range view.Flows {
		keys = append(keys, fmt.Sprintf("  %-13s %s", f.Title, f.What))
	}
	c := &cobra.Command{
		Use: "watch", Short: "Show how fast counters grow", Args: noArgs,
		Long: `Reads the statistics repeatedly and shows how fast counters grow: on a screen in a terminal, otherwise in one line
(--plain) or one JSON object (--json) per reading. The columns are:

` + strings.Join(keys, "\n") + `

A rate is computed from two publications of the process, and 'over' is the time between them by the clock of the
process. The first line for a process or web server waits for the second publication, for up to 2 s longer than
--interval. If nothing new was published for three seconds, 'over' says whether the process is idle or stopped. After a
restart, or if the clock was set, a dash replaces the rate, and --json gives the reason. With --stdin, watch reads one
document after another, as fast as they arrive.`,
		Example: `  tslab watch --pid 4711
  tslab watch --pid 4711 --interval 5s --count 12 --plain > minute.txt
  tslab watch --url http://127.0.0.1:8080 --json | jq .rates.objects_allocated`,
		RunE: func(c *cobra.Command, _ []string) error {
			src, err := a.openFollowing(c)
			if err != nil {
				return err
			}
			defer src.Close()
			if count < 0 {
				return errors.New("--count takes 0 (no limit) or more")
			}
			if a.interactive(plain) && count == 0 {
				return a.screen(c.Context(), src, screen.Options{Tab: "overview"})
			}
			return a.watch(c.Context(), src, count)
		},
	}
	a.sourceFlags(c)
	a.formFlags(c)
	a.intervalFlag(c)
	c.Flags().IntVarP(&count, "count", "n", 0, "stop after this many lines; 0: continue until interrupted")
	c.Flags().BoolVar(&plain, "plain", false, "print lines instead of showing a screen")
	return c
}

func (a *app) screen(ctx context.Context, src source.Source, o screen.Options) error {
	a.onScreen = true
	o.Source, o.Interval, o.Color, o.Style, o.Follows = src, a.interval, a.color, a.style(), a.choice.Name != ""
	return screen.Run(ctx, o, a.in, a.stdout)
}

// follow calls fn for each reading until it says false, the source has no more, or the context ends. A process that
// ends while it is looked at is the end and no error, unless a.ended wants to wait for another.
func (a *app) follow(ctx context.Context, src source.Source, fn func(*rates.Interval) (bool, error)) error {
	var last *snapshot.Snapshot
	var readings rates.Series
	for {
		snap, err := src.Next(ctx)
		switch {
		case last != nil && (err == io.EOF || ctx.Err() != nil):
			return nil
		case errors.Is(err, segment.ErrEnded) && a.ended != nil && ctx.Err() == nil:
			if !a.ended(err) || !a.pause(ctx) {
				return nil
			}
			continue
		case last != nil && errors.Is(err, segment.ErrEnded):
			_ = a.out.Flush()
			fmt.Fprintf(a.stderr, "tslab: %s\n", said(err))
			return nil
		case err == io.EOF:
			return fmt.Errorf("%s: no document", src.Name())
		case err != nil:
			return err
		}
		more, err := fn(readings.Next(snap))
		last = snap
		if err == nil {
			err = a.out.Flush()
		}
		if err != nil || !more {
			return err
		}
		if a.choice.Stdin {
			continue
		}
		if !a.pause(ctx) {
			return nil
		}
	}
}

// pause waits for the next turn; false when the context ends first.
func (a *app) pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(a.interval):
		return true
	}
}

const headEvery = 20 // lines

// firstRates is how long somebody who works may take until there are two publications.
const firstRates = 2 * time.Second

// early says whether to wait for the first rates of a source that goes on by itself.
func (a *app) early(i *rates.Interval, begin time.Time) bool {
	return (a.choice.PidSet || a.choice.Name != "" || a.choice.URL != "") && i.Seconds == 0 && time.Since(begin) < a.interval+firstRates
}

func (a *app) watch(ctx context.Context, src source.Source, count int) error {
	n, begin := 0, time.Now()
	var waiting *rates.Interval
	show := func(i *rates.Interval) error {
		n++
		if a.json {
			return a.watchJSON(i)
		}
		a.watchLine(i, n)
		return nil
	}
	err := a.follow(ctx, src, func(i *rates.Interval) (bool, error) {
		if n == 0 && a.early(i, begin) {
			waiting = i
			return true, nil
		}
		err := show(i)
		return n != count, err
	})
	if err == nil && n == 0 && waiting != nil { // it ended before there were two
		err = show(waiting)
	}
	return err
}

func (a *app) watchLine(i *rates.Interval, n int) {
	width := 10
	if a.raw {
		width = 14
	}
	line := func(first string, cell func(*view.Flow) string) string {
		text := first
		for k := range view.Flows {
			f := &view.Flows[k]
			c := cell(f)
			w := max(width, len(f.Title))
			text += "  " + strings.Repeat(" ", max(0, w-len(c))) + c
		}
		if a.width > 0 {
			text = ansi.Truncate(text, a.width, "")
		}
		return text
	}
	if n%headEvery == 1 {
		a.lines(a.cut(a.bold(view.Head(i.To))))
		a.println(a.bold(line("time        over", func(f *view.Flow) string { return f.Title })))
	}
	a.println(line(fmt.Sprintf("%-8s %7s", view.Clock(i.To), view.Over(i)), func(f *view.Flow) string { return f.Cell(i, a.style()) }))
}

func (a *app) watchJSON(i *rates.Interval) error {
	now, perSecond := map[string]any{}, map[string]any{}
	for k := range view.Flows {
		f := &view.Flows[k]
		v, ok := f.Value(i)
		switch {
		case !f.Counter:
			now[f.Key] = v
		case ok:
			perSecond[f.Key] = v
		default:
			perSecond[f.Key] = nil
		}
	}
	line := answer(i.To, map[string]any{"interval_seconds": i.Seconds, "now": now, "rates": perSecond})
	if i.Why != "" {
		line["no_rates"] = i.Why
	}
	return json.NewEncoder(a.out).Encode(line)
}

// ---- top ----

func (a *app) topCommand() *cobra.Command {
	chosen := map[string]*bool{}
	by, filter, most, plain, perSecond, all := "", "", 0, false, false, false
	c := &cobra.Command{
		Use: "top", Short: "Show which labels, phases, classes or epochs hold the memory, and what ends of phases gave back", Args: noArgs,
		Long: `Shows one list of the snapshot, the largest entries first: on a screen in a terminal, whose last line names the
keys, otherwise as a table (--plain), or as JSON (--json) with every figure of each row.

--by takes any number of the list, by its name in docs/metrics.md, or one of these words: growth (of the memory that
stays, in bytes per second), live, committed, age, limit. Append "/s" to order by the growth of a number. With "/s"
or --rates, top takes two readings, --interval apart.`,
		Example: `  tslab top --pid 4711                                  # labels, by committed memory
  tslab top --pid 4711 --by growth                      # which label grows
  tslab top --pid 4711 --phases --by age -n 5           # the oldest phases
  tslab top --pid 4711 --classes --by slow_path_hits/s  # where it is slow now
  tslab top --file stats.json --epochs --by refcount
  tslab top --url http://127.0.0.1:8080 --labels --json | jq '.rows[0].label'`,
		RunE: func(c *cobra.Command, _ []string) error {
			l, o, err := topChoice(chosen, by, most)
			if err != nil {
				return err
			}
			o.All, o.Filter = all, filter
			open := a.open
			if a.interactive(plain) {
				open = a.openFollowing
			}
			src, err := open(c)
			if err != nil {
				return err
			}
			defer src.Close()
			if a.interactive(plain) {
				return a.screen(c.Context(), src, screen.Options{Tab: l.Name, Order: o, Rates: perSecond})
			}
			return a.top(c.Context(), src, l, o, perSecond)
		},
	}
	for _, l := range view.Lists {
		chosen[l.Name] = c.Flags().Bool(l.Name, false, "show "+l.Name+", ordered by "+l.By+" by default")
	}
	a.sourceFlags(c)
	a.formFlags(c)
	a.intervalFlag(c)
	c.Flags().StringVar(&by, "by", "", "order by this number of the list; NUMBER/s: by its growth per second")
	c.Flags().IntVarP(&most, "rows", "n", 0, "show this many rows; 0: 20 in a table, as many as fit on a screen")
	c.Flags().StringVar(&filter, "filter", "", "show only rows whose name contains this text, in upper or lower case")
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "n" {
			name = "rows"
		}
		return pflag.NormalizedName(name)
	})
	c.Flags().BoolVar(&all, "all", false, "also show classes that have never been used (JSON always contains them)")
	c.Flags().BoolVar(&perSecond, "rates", false, "show counters per second")
	c.Flags().BoolVar(&plain, "plain", false, "print a table instead of showing a screen")
	_ = c.RegisterFlagCompletionFunc("by", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		l, _, err := topChoice(chosen, "", 0)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return l.Numbers(), cobra.ShellCompDirectiveNoFileComp
	})
	return c
}

const topRows = 20

func topChoice(chosen map[string]*bool, by string, most int) (*view.List, view.Order, error) {
	l, o := view.Find("labels"), view.Order{Most: most}
	n := 0
	for name, on := range chosen {
		if *on {
			l = view.Find(name)
			n++
		}
	}
	if n > 1 {
		return nil, o, errors.New("give one of --classes, --closes, --epochs, --labels and --phases, not several")
	}
	if most < 0 {
		return nil, o, errors.New("--rows takes 0 or more")
	}
	if by == "" {
		by = l.By
	}
	var err error
	o.Metric, o.PerSecond, err = l.Metric(by)
	return l, o, err
}

func (a *app) top(ctx context.Context, src source.Source, l *view.List, o view.Order, perSecond bool) error {
	if o.Most == 0 && !a.json {
		o.Most = topRows
	}
	readings := 1
	if perSecond || o.PerSecond {
		readings = 2
	}
	n, begin, ended := 0, time.Now(), error(nil)
	a.ended = func(err error) bool {
		ended = err
		return false
	}
	var last *rates.Interval
	err := a.follow(ctx, src, func(i *rates.Interval) (bool, error) {
		n++
		last = i
		return n < readings || readings > 1 && a.early(i, begin), nil
	})
	if err != nil {
		return err
	}
	switch {
	case n >= readings:
	case ctx.Err() != nil:
		return ctx.Err()
	case ended != nil:
		return ended
	default:
		return fmt.Errorf("%s: rates need two documents", src.Name())
	}
	if readings == 2 && last.Why != "" {
		fmt.Fprintf(a.stderr, "tslab: no rates: %s\n", oneLine(last.Why))
	}
	if a.json {
		return a.topJSON(l, o, last)
	}
	a.lines(a.cut(a.bold(view.Head(last.To))))
	a.notes(last.To)
	if t := view.Allocators(last.To, a.style()); t != nil {
		t.Head = a.bold
		a.lines(t.Lines(a.width))
		a.println("")
	}
	if last.Seconds != 0 {
		a.println("rates over " + view.Over(last))
	}
	t := l.Table(last, o, a.style(), perSecond)
	t.Head = a.bold
	a.lines(t.Lines(a.width))
	if len(t.Rows) == 0 && o.Filter != "" {
		a.println(fmt.Sprintf("no %s have %q in their name", l.Name, o.Filter))
	}
	if rest := l.Rest(last.To, o, len(t.Rows)); rest != "" {
		a.println(rest)
	}
	if sum := l.Sum(last.To, a.style()); sum != "" {
		a.lines(a.cut(sum))
	}
	if left := view.Left(last.To, l); left != "" {
		a.println(left)
	}
	return nil
}

func (a *app) topJSON(l *view.List, o view.Order, i *rates.Interval) error {
	by := o.Metric.Key
	if o.PerSecond {
		by += "/s"
	}
	rows := []map[string]any{}
	o.All = true
	for _, r := range l.Rows(i, o) {
		row := map[string]any{}
		if len(i.To.Parts) != 0 {
			row["allocator"] = i.To.Of(r).Allocator()
		}
		for _, m := range metrics.Of(l.Section).Metrics {
			if !r.Has(m) {
				continue
			}
			row[m.Key] = json.RawMessage(r.JSON(m))
			if v, ok := i.Rate(r, m); ok {
				row[m.Key+"/s"] = v
			}
		}
		rows = append(rows, row)
	}
	return a.writeJSON(answer(i.To, map[string]any{"list": l.Name, "by": by, "interval_seconds": i.Seconds,
		"left_out": i.To.Left(l.Section), "rows": rows}))
}
