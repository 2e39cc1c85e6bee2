// Package cli is the command line: what is asked, in which form it is answered, and how it ends.
//
// Exit codes: 0 all is well, 1 something was found (doctor, diff), 2 an error or wrong usage. A reader that leaves a
// pipe is no error. Errors are one line on standard error.
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/rates"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/source"
	"temporal-slab/tslab/internal/units"
)

const (
	exitFine    = 0
	exitFinding = 1
	exitError   = 2
)

// errFinding ends a command that worked and has something to report.
var errFinding = errors.New("something was found")

// Version is set by the build.
var Version = "development"

type app struct {
	in     *os.File
	stdout *os.File
	stderr io.Writer
	out    *bufio.Writer

	choice   source.Choice
	json     bool
	raw      bool
	interval time.Duration
	ended    func(error) bool // follow: whether to wait for another process
	onScreen bool
	terminal bool // standard output is one
	width    int  // of the terminal; 0: no terminal, no limit
	color    bool
}

// Main runs a command line and returns the exit code.
func Main(args []string, stdin, stdout, stderr *os.File) int {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a pipe nobody reads is an error of the write, not our end
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal ends at once
	a := &app{in: stdin, stdout: stdout, stderr: stderr, out: bufio.NewWriter(stdout)}
	a.look()
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(a.out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if werr := a.out.Flush(); werr != nil && (err == nil || errors.Is(err, errFinding)) {
		if code := exitFine; errors.Is(werr, syscall.EPIPE) {
			if err != nil {
				code = exitFinding
			}
			return code
		}
		err = fmt.Errorf("standard output: %w", unwrapPath(werr))
	}
	switch {
	case err == nil || errors.Is(err, syscall.EPIPE):
		return exitFine
	case errors.Is(err, errFinding):
		return exitFinding
	case errors.Is(err, context.Canceled):
		err = errors.New("interrupted")
	}
	fmt.Fprintf(stderr, "tslab: %s\n", said(unwrapWrite(stdout, err)))
	return exitError
}

// look finds out what standard output is.
func (a *app) look() {
	columns, _ := strconv.Atoi(os.Getenv("COLUMNS")) // a shell that exports it wants to be heard, in a pipe, too
	if !term.IsTerminal(a.stdout.Fd()) {
		a.width = max(0, columns)
		return
	}
	a.terminal = true
	if w, _, err := term.GetSize(a.stdout.Fd()); err == nil && w > 0 {
		a.width = w
	} else {
		a.width = 80
	}
	if columns > 0 {
		a.width = columns
	}
	a.color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
}

func unwrapPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// unwrapWrite names standard output in an error of a write to it.
func unwrapWrite(stdout *os.File, err error) error {
	var p *os.PathError
	if errors.As(err, &p) && p.Op == "write" && p.Path == stdout.Name() {
		return fmt.Errorf("standard output: %w", p.Err)
	}
	return err
}

// hanging breaks a line between words so that it fits a width, 0: any; what follows stands three columns further in.
func hanging(line string, width int) string {
	if width <= 0 || ansi.StringWidth(line) <= width {
		return line
	}
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	var out strings.Builder
	out.WriteString(line[:indent])
	at := indent
	for n, word := range strings.Split(text, " ") {
		w := ansi.StringWidth(word)
		switch {
		case n > 0 && at+1+w > width && at > indent+3:
			out.WriteString("\n" + strings.Repeat(" ", indent+3))
			at = indent + 3
		case n > 0:
			out.WriteByte(' ')
			at++
		}
		out.WriteString(word)
		at += w
	}
	return out.String()
}

func oneLine(text string) string { return units.Text(strings.Join(strings.Fields(text), " ")) }

// ---- flags that several commands have ----

func (a *app) sourceFlags(c *cobra.Command) {
	f := c.Flags()
	f.IntVar(&a.choice.Pid, "pid", 0, "read the process with this id, started with TSLAB_OPTIONS=segment=1")
	f.StringVar(&a.choice.Name, "name", "", "read the only process of this program; commands that keep reading follow it through restarts (same command line)")
	f.StringVar(&a.choice.Replay, "replay", "", "read a recording made by 'tslab record', as of this time: FILE (its end), FILE@14:05:30, FILE@+90s, FILE@-2m")
	f.IntVar(&a.choice.Slot, "allocator", -1, "with --pid or --name: read only the allocator with this number in 'tslab ls'; -1: all live allocators, their sum first")
	f.StringVar(&a.choice.File, "file", "", "read a JSON document from this file, as written by tslab-stats-dump or slab_stats_json")
	f.BoolVar(&a.choice.Stdin, "stdin", false, "read a JSON document from standard input")
	f.StringVar(&a.choice.URL, "url", "", "read a JSON document from a web server; the default path is /stats.json")
	f.DurationVar(&a.choice.Timeout, "timeout", 10*time.Second, "give up if a web server has not answered within this time")
	_ = c.RegisterFlagCompletionFunc("pid", completePids)
	_ = c.RegisterFlagCompletionFunc("name", completeNames)
	_ = c.MarkFlagFilename("file", "json")
	_ = c.MarkFlagFilename("replay")
}

func (a *app) formFlags(c *cobra.Command) {
	c.Flags().BoolVar(&a.json, "json", false, "print JSON instead of text")
	c.Flags().BoolVar(&a.raw, "bytes", false, "print exact numbers: bytes, nanoseconds, counts")
}

func (a *app) intervalFlag(c *cobra.Command) {
	c.Flags().DurationVarP(&a.interval, "interval", "i", time.Second, "wait this long between two readings")
}

// open opens a source for one reading, or for some that are of one process: its end is an error then, and nothing waits.
func (a *app) open(c *cobra.Command) (source.Source, error) {
	a.choice.PidSet = c.Flags().Changed("pid")
	if c.Flags().Lookup("interval") != nil && a.interval < 50*time.Millisecond {
		return nil, errors.New("--interval must be 50ms or more")
	}
	return a.choice.Open(a.in)
}

// openAgain opens a source that goes on with the process that comes after one which has ended, and says so. Whoever opens
// it goes on after segment.ErrEnded: by then it has been said that another process is waited for.
func (a *app) openAgain(c *cobra.Command) (source.Source, error) {
	a.choice.Again = func(text string) {
		if !a.onScreen { // a screen says itself which process it shows
			fmt.Fprintf(a.stderr, "tslab: %s\n", oneLine(text))
		}
	}
	return a.open(c)
}

// openFollowing opens a source for readings without end: a process that was named is followed through restarts.
func (a *app) openFollowing(c *cobra.Command) (source.Source, error) {
	if a.choice.Name == "" {
		return a.open(c)
	}
	a.ended = func(error) bool { return true }
	return a.openAgain(c)
}

func (a *app) style() units.Style { return units.Style{Raw: a.raw} }

// once reads the one snapshot that a command is about.
func (a *app) once(c *cobra.Command) (*rates.Interval, error) {
	src, err := a.open(c)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	snap, err := source.Only(c.Context(), src)
	if err != nil {
		return nil, err
	}
	return rates.Between(nil, snap), nil
}

func (a *app) paint(code, text string) string {
	if !a.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (a *app) bold(text string) string { return a.paint("1", text) }

// cut is a line that does not run over the terminal's edge.
func (a *app) cut(line string) []string {
	if a.width > 0 {
		line = ansi.Truncate(line, a.width, "…")
	}
	return []string{line}
}

// answer is a JSON answer with whose figures these are, what the process does and how old they are (null: not known).
func answer(s *snapshot.Snapshot, members map[string]any) map[string]any {
	members["pid"], members["timestamp_ns"], members["state"] = s.Pid(), s.Document().U("timestamp_ns"), nil
	if s.State != snapshot.Unknown {
		members["state"] = s.State.String()
	}
	members["changed_since"] = s.Changed()
	if n := len(s.Parts); n != 0 {
		members["allocators"] = n
	}
	if n := s.Unseen(); n != 0 {
		members["allocators_left_out"] = n
	}
	members["labels_left_out"] = s.Left(metrics.Label)
	members["age_seconds"] = nil
	if age, ok := s.Old(); ok {
		members["age_seconds"] = age.Seconds()
	}
	return members
}

func (a *app) println(text string) { fmt.Fprintln(a.out, text) }
