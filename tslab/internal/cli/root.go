package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"temporal-slab/tslab/internal/doctor"
	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/source"
	"temporal-slab/tslab/internal/units"
)

const rootLong = `tslab shows what a temporal-slab allocator does, in a running process or in a JSON document that was written
earlier. tslab does not stop the process that it reads.

Start a program with TSLAB_OPTIONS=segment=1, or start any program with 'tslab run'. Then use these commands:

  tslab                           in a terminal, lets you choose a process and inspect it
  tslab ls                        lists the processes whose statistics tslab can read
  tslab doctor --pid 4711         shows what is wrong and what to do about it
  tslab top --pid 4711            shows which labels, phases, classes or epochs hold the memory
  tslab watch --pid 4711          shows how fast counters grow
  tslab profile --pid 4711        shows which code allocated the memory (also needs the option profile_bytes)
  tslab web 4711                  serves all of this as a web page, with up to an hour of history

Most commands read one of these sources: --pid N, --name PROGRAM, --file F, --stdin, --url U, --replay F@TIME.

Exit codes: 0 no problem found; 1 problem found (doctor: an ACTION, diff: a regression, gate: a leak); 2 error or
wrong usage. tslab respects NO_COLOR, and writes neither colors nor a full-screen view to a pipe or a file.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "tslab", Short: "Look into a temporal-slab allocator", Long: rootLong, Version: Version,
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if a.interactive(false) {
				return a.pick(c)
			}
			return c.Help()
		},
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			text := fmt.Sprintf("unknown command %q", args[0])
			if near := c.SuggestionsFor(args[0]); len(near) != 0 {
				text += "; did you mean " + strings.Join(near, " or ") + "?"
			} else {
				text += "; see tslab --help"
			}
			return errors.New(text)
		},
	}
	root.SuggestionsMinimumDistance = 2
	root.SetVersionTemplate("tslab {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(a.lsCommand(), a.statsCommand(), a.watchCommand(), a.topCommand(), a.doctorCommand(), a.profileCommand(), a.flameCommand(), a.exportCommand(),
		a.pushCommand(), a.serveCommand(), a.webCommand(), a.recordCommand(), a.diffCommand(), a.gateCommand(), a.runCommand(), a.shimCommand(), a.schemaCommand(), a.manCommand())
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Args = aCommand
			c.Long, c.Example = "Shows the description, the flags and the examples of a command, like --help after the command.", "  tslab help top"
		}
		if c.Name() == "completion" {
			c.Example = "  source <(tslab completion bash)"
			c.Args, c.RunE = anyShell, func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
	return root
}

// aCommand refuses a word that names no command: the answer would be that to no word at all.
func aCommand(c *cobra.Command, args []string) error {
	if found, left, err := c.Root().Find(args); err != nil || found == nil || len(left) != 0 {
		return fmt.Errorf("there is no command %q; see tslab --help", strings.Join(args, " "))
	}
	return nil
}

// anyShell refuses a shell that completion does not know: the others are commands.
func anyShell(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes bash, fish, powershell or zsh, not %q", c.CommandPath(), args[0])
}

// flagError says which flag may have been meant.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return fmt.Errorf("%w; see %s --help", err, c.CommandPath())
	}
	name, best, least := unknown.GetSpecifiedName(), "", 3
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if d := units.Distance(name, f.Name); d < least {
			best, least = f.Name, d
		}
	})
	if best == "" || len(name) < 2 {
		return fmt.Errorf("%s has no --%s; see %s --help", c.CommandPath(), name, c.CommandPath())
	}
	return fmt.Errorf("%s has no --%s; did you mean --%s?", c.CommandPath(), name, best)
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("unexpected argument %q; see %s --help", args[0], c.CommandPath())
}

func completePids(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	list, _ := segment.List()
	var words []string
	for _, p := range list {
		words = append(words, strconv.Itoa(p.Pid)+"\t"+p.Command)
		p.Segment.Close()
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

func completeNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var words []string
	for _, c := range source.Candidates() {
		program, _, _ := strings.Cut(c.Command, " ")
		words = append(words, program)
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of the statistics", Args: noArgs,
		Long:    "Prints the JSON Schema (2020-12) of the document that slab_stats_json, tslab-stats-dump and 'tslab stats --json' write.",
		Example: "  tslab schema > stats.schema.json\n  tslab schema | jq '.properties | keys'",
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(metrics.Schema)
			return err
		},
	}
}

func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write the manual pages into a directory", Hidden: true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%s takes one directory; see %s --help", c.CommandPath(), c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := c.Root()
			root.DisableAutoGenTag = true
			for _, c := range root.Commands() {
				if c.Name() == "completion" {
					root.RemoveCommand(c) // its pages are about other systems; completions are installed
				}
			}
			if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "temporal-slab", Manual: "temporal-slab"}, args[0]); err != nil {
				return err
			}
			pages, err := filepath.Glob(filepath.Join(args[0], "*.1"))
			fmt.Fprintf(a.out, "%s%s\n", doctor.Singular(fmt.Sprintf("%d pages in ", len(pages))), args[0])
			return err
		},
	}
}
