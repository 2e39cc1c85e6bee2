package cli

// web: the page of any process.

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"temporal-slab/tslab/internal/doctor"
	"temporal-slab/tslab/internal/source"
	"temporal-slab/tslab/internal/units"
	"temporal-slab/tslab/internal/web"
)

func (a *app) webCommand() *cobra.Command {
	listen, replay, pid, name, o := "", "", "", "", web.Options{}
	c := &cobra.Command{
		Use: "web [PID|NAME]", Short: "Serve a page of a process: what is wrong, who holds the memory, what grows and until when",
		Long: `Serves pages for a browser: one of each process of this user that shows its statistics, and a list of them to pick from.
With a process id, or the name of a program, the first page is that of this process, and its history begins at once.

A page has the doctor's verdict on top, growth and limits, labels, ended phases by age, size classes, and of a label
that is chosen its phases, the code that holds it (with profile_bytes=N) and its growth. Up to an hour of history is
kept by this server for each process that is looked at, so a page that is loaded again has it, too. It needs nothing
from the network. Nothing is signalled, stopped or slowed, and a process that is stopped is shown as well.

/metrics is all of these processes in one scrape of Prometheus, each series with pid and program; of each process the
labels that hold most, --top-labels of them, and the sum of the others. /sd.json is for its HTTP discovery, with each
process as a target of its own.

Routes: /processes, /processes.json, /metrics, /sd.json, and below /processes/PID/ the page, now.json, stats.json,
metrics, doctor, healthz, and profile: the heap profile for servers that scrape pprof. It listens on the loopback only
unless --listen says otherwise; there is no password, so put it behind something that has one.`,
		Example: `  tslab web                       # pick a process
  tslab web 4711
  tslab web server                # the one program of that name
  tslab web --replay night.rec@03:20
  ssh -L 9465:127.0.0.1:9465 host tslab web server`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%s takes one process, not %d words; see %s --help", c.CommandPath(), len(args), c.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: completePids,
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkListen(listen); err != nil {
				return err
			}
			if o.TopLabels < 1 {
				return errors.New("--top-labels takes 1 or more")
			}
			if o.Stale < 0 {
				return errors.New("--stale-after takes 0 (never) or more")
			}
			first, err := firstProcess(args, pid, name, replay)
			if err != nil {
				return err
			}
			o.Pid = first
			s := web.New(o)
			defer s.Close()
			if replay != "" {
				pid, err := s.Replay(replay)
				if err != nil {
					return err
				}
				o.Pid = pid
			} else if o.Pid != 0 {
				if err := s.Watch(o.Pid); err != nil {
					return err
				}
			}
			return a.listenAndServe(c.Context(), listen, s.Handler(), func(address string) string {
				if replay != "" {
					return fmt.Sprintf("http://%s/processes/%d/ is the page of the recording; ctrl-C ends it", address, o.Pid)
				}
				if o.Pid != 0 {
					return fmt.Sprintf("http://%s/processes/%d/ is the page of pid %d; ctrl-C ends it", address, o.Pid, o.Pid)
				}
				return fmt.Sprintf("http://%s/ lists the processes; ctrl-C ends it", address)
			})
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:9465", "listen on this HOST:PORT; port 0 takes a free one")
	c.Flags().StringVar(&pid, "pid", "", "begin with the process with this id, like the word alone")
	c.Flags().StringVar(&name, "name", "", "begin with the one process of this program, like the word alone")
	_ = c.RegisterFlagCompletionFunc("pid", completePids)
	_ = c.RegisterFlagCompletionFunc("name", completeNames)
	c.Flags().IntVar(&o.TopLabels, "top-labels", web.TopLabels, "series of so many labels of each process at /metrics; the sum of the others is (rest)")
	c.Flags().StringVar(&replay, "replay", "", "show a recording of 'tslab record' at a time, with the hour before: FILE, FILE@14:05:30, FILE@-2m")
	_ = c.MarkFlagFilename("replay")
	c.Flags().DurationVar(&o.Stale, "stale-after", time.Minute, "answer 503 at healthz when the figures are older; 0: never")
	c.Flags().Uint64Var(&o.LeakSeconds, "leak-age", doctor.LeakSeconds, "take an ended phase that holds objects for a leak after so many seconds")
	c.Flags().BoolVar(&a.json, "json", false, "say in JSON which address it listens on")
	return c
}

// firstProcess is the process that the first page is of, 0 for none: a word alone, or by a flag as other commands have it.
func firstProcess(args []string, pid, name, replay string) (int, error) {
	given := len(args)
	for _, flag := range []string{pid, name, replay} {
		if flag != "" {
			given++
		}
	}
	switch {
	case given > 1 && replay != "":
		return 0, errors.New("--replay shows a recording; it takes no process")
	case given > 1:
		return 0, errors.New("one process is enough: a word, --pid or --name")
	case len(args) == 1:
		return processOf(args[0])
	case pid != "":
		if _, err := strconv.Atoi(pid); err != nil {
			return 0, fmt.Errorf("--pid takes a number, not %s", units.Text(pid))
		}
		return processOf(pid)
	case name != "":
		return source.Named(name)
	}
	return 0, nil
}

// processOf is the process that a word of the command line means: an id, or a name.
func processOf(word string) (int, error) {
	if pid, err := strconv.Atoi(word); err == nil {
		if pid <= 0 {
			return 0, fmt.Errorf("the id of a process is a number above 0, not %s", units.Text(word))
		}
		return pid, nil
	}
	return source.Named(word)
}
