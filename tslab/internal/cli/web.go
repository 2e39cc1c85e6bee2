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
		Use: "web [PID|NAME]", Short: "Serve a web page of a process: what is wrong, what holds the memory, what grows and until when",
		Long: `Serves a page for each process of this user that publishes its statistics, and a list of these processes. With a
process id or the name of a program, web begins with the page of that process, and starts to record its history at
once.

A page shows the doctor's verdict, growth and limits, labels, ended phases by age, and size classes. For a label
that you click, the page shows the phases, the growth, and the code that allocated the memory (with
profile_bytes=N). The server keeps up to an hour of history for each process that you view, so a reloaded page still
shows it. Pages load nothing from other servers. web does not signal, stop or slow a process, and also shows stopped
processes.

/metrics returns all of these processes in one Prometheus scrape, where each series has the labels pid and program.
For each process, /metrics shows the --top-labels labels that hold the most memory, and the sum of the others.
/sd.json is for the HTTP discovery of Prometheus, with each process as a separate target.

Routes: /processes, /processes.json, /metrics, /sd.json, and below /processes/PID/ the page, now.json, stats.json,
metrics, doctor, healthz, and profile (the heap profile, for servers that scrape pprof). web listens only on the
loopback address unless --listen says otherwise. There is no password, so use a proxy that adds authentication.`,
		Example: `  tslab web                       # choose a process in the browser
  tslab web 4711
  tslab web server                # the only process of this program
  tslab web --replay night.rec@03:20
  ssh -L 9465:127.0.0.1:9465 host tslab web server`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%s takes one process, not %d; see %s --help", c.CommandPath(), len(args), c.CommandPath())
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
					return fmt.Sprintf("http://%s/processes/%d/ is the page of the recording; press Ctrl-C to stop", address, o.Pid)
				}
				if o.Pid != 0 {
					return fmt.Sprintf("http://%s/processes/%d/ is the page of pid %d; press Ctrl-C to stop", address, o.Pid, o.Pid)
				}
				return fmt.Sprintf("http://%s/ lists the processes; press Ctrl-C to stop", address)
			})
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:9465", "listen on this HOST:PORT; port 0 chooses a free port")
	c.Flags().StringVar(&pid, "pid", "", "begin with the page of the process with this id, like the argument PID")
	c.Flags().StringVar(&name, "name", "", "begin with the page of the only process of this program, like the argument NAME")
	_ = c.RegisterFlagCompletionFunc("pid", completePids)
	_ = c.RegisterFlagCompletionFunc("name", completeNames)
	c.Flags().IntVar(&o.TopLabels, "top-labels", web.TopLabels, "show this many labels of each process at /metrics; (rest) is the sum of the others")
	c.Flags().StringVar(&replay, "replay", "", "show a recording made by 'tslab record', as of this time, with the hour before: FILE (its end), FILE@14:05:30, FILE@-2m")
	_ = c.MarkFlagFilename("replay")
	c.Flags().DurationVar(&o.Stale, "stale-after", time.Minute, "answer 503 at healthz if the figures are older than this; 0: never")
	c.Flags().Uint64Var(&o.LeakSeconds, "leak-age", doctor.LeakSeconds, "report ended phases that still hold objects as leaks from this age in seconds")
	c.Flags().BoolVar(&a.json, "json", false, "print the address on which web listens in JSON")
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
		return 0, errors.New("--replay shows a recording; it cannot be combined with a process")
	case given > 1:
		return 0, errors.New("give only one process: as an argument, with --pid or with --name")
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
