package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"temporal-slab/tslab/internal/diff"
	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/rates"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/source"
	"temporal-slab/tslab/internal/units"
)

type gateOptions struct {
	label          string
	warmUp, rounds uint
	objects, bytes uint64
	settle, news   time.Duration // between two rounds; for newer figures, at most
}

func (a *app) gateCommand() *cobra.Command {
	o := gateOptions{warmUp: 3, rounds: 5, settle: 200 * time.Millisecond, news: 5 * time.Second}
	c := &cobra.Command{
		Use: "gate --pid N [flags] COMMAND [ARGUMENT...] | gate BEFORE.json AFTER.json", Short: "Fail if another round of the same requests retains more", DisableFlagsInUseLine: true,
		Long: `Tests a server for leaks. gate runs COMMAND, which makes requests, repeatedly. After each round, gate reads what is
live under each label, in open and in ended phases. gate fails (exit code 1) as soon as a label exceeds its maximum
since the warm-up by more than --objects objects, or by more than a quarter of its bytes plus --bytes. Caches may
keep any amount, provided that another round of the same requests adds nothing. If you give two documents, gate
compares them.

An idle process publishes what a round retained only when the next round begins, and the memory of requests in
progress is not retained. Therefore, gate counts the minimum from the end of a round to the end of the next one,
waits for --settle between two rounds, and runs one round more than those that count. gate adds rounds until figures
have been published after the warm-up, and again after the first round that counts.

In a test program, use slab_gate, or tslab_phase_gate of <temporal_slab/phase.h>.`,
		Example: `  tslab gate --pid 4711 ./requests.sh
  tslab gate --pid 4711 --label 'GET /page' --objects 2 curl -s http://127.0.0.1:8080/page
  tslab gate --bytes 4096 before.json after.json`,
		Args: func(c *cobra.Command, args []string) error {
			live := ofProcess(c) || c.Flags().Changed("url")
			switch {
			case live && len(args) == 0:
				return errors.New("gate needs a command that makes a round of requests; see tslab gate --help")
			case !live && len(args) != 2:
				return errors.New("gate takes --pid N, --name PROGRAM or --url U and a command, or two documents; see tslab gate --help")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if o.rounds == 0 {
				return errors.New("--rounds takes 1 or more")
			}
			if !ofProcess(c) && !c.Flags().Changed("url") {
				return a.gateFiles(o, args)
			}
			src, err := a.open(c)
			if err != nil {
				return err
			}
			defer src.Close()
			return a.gate(c.Context(), src, o, args)
		},
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.IntVar(&a.choice.Pid, "pid", 0, "read the process with this id, started with TSLAB_OPTIONS=segment=1")
	f.StringVar(&a.choice.Name, "name", "", "read the only process of this program")
	f.StringVar(&a.choice.URL, "url", "", "read a JSON document from a web server; the default path is /stats.json")
	f.DurationVar(&a.choice.Timeout, "timeout", 10*time.Second, "give up if a web server has not answered within this time")
	a.choice.Slot = -1
	f.StringVar(&o.label, "label", "", "check only this label")
	f.UintVar(&o.warmUp, "warm-up", o.warmUp, "run this many rounds before the first one that counts")
	f.UintVar(&o.rounds, "rounds", o.rounds, "count at least this many rounds")
	f.Uint64Var(&o.objects, "objects", 0, "allow a round to retain this many objects more than any earlier one")
	f.Uint64Var(&o.bytes, "bytes", 0, "allow a round to retain this many usable bytes more, in addition to a quarter")
	f.DurationVar(&o.settle, "settle", o.settle, "wait this long between two rounds")
	f.BoolVar(&a.json, "json", false, "print JSON instead of text")
	_ = c.RegisterFlagCompletionFunc("pid", completePids)
	_ = c.RegisterFlagCompletionFunc("name", completeNames)
	return c
}

// retained is what a label keeps.
type retained struct{ objects, bytes, open, draining uint64 }

// gateFinding is the label that has grown most.
type gateFinding struct {
	Label    string `json:"label"`
	Round    uint   `json:"round"`
	Objects  uint64 `json:"live_objects"`
	Bytes    uint64 `json:"live_bytes"`
	Before   uint64 `json:"live_objects_before"`
	Bytes0   uint64 `json:"live_bytes_before"`
	Open     uint64 `json:"open_phases"`
	Draining uint64 `json:"draining_phases"`
	Makers   string `json:"made_by,omitempty"` // in words: of what is made outside of scopes
}

type gateState struct {
	o           gateOptions
	most        map[string]retained
	first, last *snapshot.Snapshot
	begun       *snapshot.Snapshot // the first one of the round
	known       bool               // a label was one of those to check
}

// read is what each label of a document retains; of several allocators of a process together.
func (g *gateState) read(snap *snapshot.Snapshot) (map[string]retained, error) {
	rows, now := snap.Rows(metrics.Label), map[string]retained{}
	if len(rows) == 0 || !rows[0].Tells("live_objects") {
		return nil, errors.New("the statistics do not contain the live objects of labels")
	}
	if g.last = snap; g.first == nil {
		g.first = snap
	}
	for _, l := range rows {
		name := l.S("label")
		if g.o.label != "" && name != g.o.label || snap.IsRest(l) {
			continue
		}
		g.known = true
		r := now[name]
		r.objects, r.bytes = snapshot.Add(r.objects, l.U("live_objects")), snapshot.Add(r.bytes, l.U("live_bytes"))
		r.open, r.draining = snapshot.Add(r.open, l.U("phases_open")), snapshot.Add(r.draining, l.U("draining_phases"))
		now[name] = r
	}
	return now, nil
}

// least keeps of two readings the one that retains less, label by label; one that is not in the first retained nothing.
func least(a, b map[string]retained) map[string]retained {
	if a == nil {
		return b
	}
	for name, r := range b {
		had, there := a[name]
		switch {
		case !there:
			a[name] = retained{}
		default:
			a[name] = retained{min(had.objects, r.objects), min(had.bytes, r.bytes), min(had.open, r.open), min(had.draining, r.draining)}
		}
	}
	return a
}

// compare gives the label that retains most more than after any round before, and remembers. The first is the measure.
func (g *gateState) compare(now map[string]retained, round uint) *gateFinding {
	var worst *gateFinding
	first := g.most == nil
	if first {
		g.most = map[string]retained{}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		r, m := now[name], g.most[name]
		more := r.objects > snapshot.Add(m.objects, g.o.objects) || r.bytes > snapshot.Add(snapshot.Add(m.bytes, m.bytes/4), g.o.bytes) // the same objects may lie elsewhere
		if !first && more && (worst == nil || r.bytes-min(r.bytes, m.bytes) > worst.Bytes-min(worst.Bytes, worst.Bytes0)) {
			worst = &gateFinding{Label: name, Round: round, Objects: r.objects, Bytes: r.bytes, Before: m.objects, Bytes0: m.bytes, Open: r.open, Draining: r.draining}
		}
		g.most[name] = retained{objects: max(m.objects, r.objects), bytes: max(m.bytes, r.bytes)}
	}
	if worst != nil {
		worst.Makers = strings.TrimPrefix(diff.MadeBy(g.first, g.last, worst.Label), "; ")
	}
	return worst
}

func (a *app) gateFiles(o gateOptions, paths []string) error {
	g := gateState{o: o}
	for round, path := range paths {
		old := g.last
		snap, err := source.ReadFile(path)
		if err != nil {
			return err
		}
		now, err := g.read(snap)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if rates.Same(old, snap) {
			return errors.New("both documents contain the same publication of one process, so nothing was judged: write the second one after more requests")
		}
		if old != nil {
			if other := momentsOf(old, snap).other; other != "" {
				return fmt.Errorf("%s, so nothing was judged: gate compares an earlier with a later document of one process", other)
			}
		}
		if worst := g.compare(now, uint(round)); worst != nil {
			return a.gateSay(worst, 0)
		}
	}
	if !g.known {
		return g.unknown()
	}
	return a.gateSay(nil, 1)
}

// gate: what a round has left is the least that is seen from its end to that of the next one. The measure is of figures that were
// published after the warm-up, and there are newer ones before the end: rounds are added for that while the process publishes any.
func (a *app) gate(ctx context.Context, src source.Source, o gateOptions, command []string) error {
	g := gateState{o: o}
	if err := a.out.Flush(); err != nil {
		return err
	}
	live := a.choice.URL == ""
	var before *snapshot.Snapshot // the newest figures of the warm-up, then those of the measure
	counted := uint(0)
	news := time.Now()
	for n := uint(1); ; n++ {
		old := g.last
		seen, err := a.gateRound(ctx, src, &g, command)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		if !rates.Same(old, g.last) {
			news = time.Now()
		}
		if n <= max(o.warmUp, 1) { // what was there before the last of the warm-up
			before = g.last
			continue
		}
		waits := live && time.Since(news) < o.news
		if g.most == nil {
			if waits && rates.Same(before, g.begun) {
				continue
			}
			g.compare(seen, 0)
			before = g.last
			continue
		}
		counted++
		if worst := g.compare(seen, counted); worst != nil {
			return a.gateSay(worst, 0)
		}
		if counted >= o.rounds && !(waits && rates.Same(before, g.begun)) {
			break
		}
	}
	if live && rates.Same(before, g.begun) {
		return fmt.Errorf("%s has published no figures since the warm-up, so nothing was judged: check that the process is not stopped and that %s reaches it",
			src.Name(), units.Text(command[0]))
	}
	if !g.known {
		return g.unknown()
	}
	return a.gateSay(nil, counted)
}

// unknown is the error of a gate that had nothing to check.
func (g *gateState) unknown() error {
	return fmt.Errorf("no phase has the label %s, so nothing was judged", units.Label(g.o.label))
}

const gatePatience = 2 * time.Second // with a command that is told to end

// gateRound waits, runs the command, and gives the least that was seen meanwhile.
func (a *app) gateRound(ctx context.Context, src source.Source, g *gateState, command []string) (map[string]retained, error) {
	var seen map[string]retained
	look := func() error {
		snap, err := source.Only(ctx, src)
		if err != nil {
			return err
		}
		now, err := g.read(snap)
		seen = least(seen, now)
		return err
	}
	if err := look(); err != nil { // of a web server it is of now, and of another round later
		return nil, err
	}
	g.begun = g.last
	if g.o.settle > 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(g.o.settle):
		}
	}
	inside, leave := context.WithCancel(ctx)
	run := exec.CommandContext(inside, command[0], command[1:]...)
	run.Stdout, run.Stderr = a.stderr, a.stderr
	run.Cancel = func() error { return run.Process.Signal(syscall.SIGTERM) }
	run.WaitDelay = gatePatience
	if err := run.Start(); err != nil {
		leave()
		return nil, fmt.Errorf("%s: %w", command[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	over := false
	defer func() { // the command does not outlast the gate
		if leave(); !over {
			<-ended
		}
	}()
	for {
		select {
		case err := <-ended:
			over = true
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case err != nil:
				return nil, fmt.Errorf("%s: %w", command[0], err)
			}
			if a.choice.URL != "" {
				return seen, nil
			}
			return seen, look()
		case <-time.After(5 * time.Millisecond):
			if a.choice.URL == "" {
				if err := look(); err != nil {
					return nil, err
				}
			}
		}
	}
}

func (a *app) gateSay(worst *gateFinding, rounds uint) error {
	if a.json {
		if err := a.writeJSON(map[string]any{"passed": worst == nil, "finding": worst}); err != nil {
			return err
		}
	} else if worst != nil {
		makers := worst.Makers
		if makers != "" {
			makers = "; " + makers
		}
		a.println(fmt.Sprintf("%s retains %s (%s) after round %d, up from at most %s (%s); its phases: %d open, %d draining%s.",
			units.Label(worst.Label), gateCount(worst.Objects), units.Bytes(worst.Bytes), worst.Round, gateCount(worst.Before), units.Bytes(worst.Bytes0), worst.Open, worst.Draining, makers))
	} else {
		a.println(fmt.Sprintf("None of %d rounds leaves more than any before.", rounds))
	}
	if worst != nil {
		return errFinding
	}
	return nil
}

func gateCount(n uint64) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}
