package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
)

//go:embed shim.c.tmpl
var shimText string

var shimTemplate = template.Must(template.New("shim").Parse(shimText))

type shimOptions struct {
	functions, callbacks []string
	label, output        string
	labelArgument        uint
}

// shimFunction is a function of the library that is wrapped, or one of whose arguments is a function that is.
type shimFunction struct {
	Name, Label string
	Argument    uint // 1 to 6: that is wrapped; 0: the function itself
}

type shim struct {
	Functions     []shimFunction
	LabelArgument uint
	Command       string
	Slots         int
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (a *app) shimCommand() *cobra.Command {
	var o shimOptions
	c := &cobra.Command{
		Use: "shim {--function NAME | --callback NAME:ARGUMENT}... [flags]", Short: "Write a library that puts phases around functions of another library", DisableFlagsInUseLine: true,
		Long: `Writes the source of a small library that begins a phase before each call of another library's function and ends the
phase after the call. The shim is for programs that you cannot change, and needs neither the signature nor the
source of the function. Preload the shim in front of the preload library.

--callback NAME:ARGUMENT is for servers. The program passes a callback to the function NAME as its first to sixth
argument, and the shim puts the phase around this callback. --label-argument gives the number of the wrapped
function's argument that is the label of the phase: a text, such as the path of a request. Otherwise, the label is
--label or the name of the function.

The shim replaces the return address of the call with an address of its own. Therefore, no exception and no longjmp
may leave a wrapped function, the function must not take or return values in vector registers of more than 128 bits,
and shadow stacks (CET) must be off. The shim runs only on x86-64.`,
		Example: `  tslab shim --function sqlite3_step -o shim.c && cc -O2 -shared -fPIC shim.c -o shim.so
  tslab shim --callback MHD_start_daemon:5 --label-argument 3 -o shim.c
  LD_PRELOAD="$PWD/shim.so:/usr/local/lib/libtemporal_slab_preload.so" ./server`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return a.shim(o) },
	}
	f := c.Flags()
	f.StringArrayVar(&o.functions, "function", nil, "wrap this function of a library; can be given several times")
	f.StringArrayVar(&o.callbacks, "callback", nil, "wrap the callback that the program passes to function NAME as its argument 1 to 6: NAME:ARGUMENT; can be given several times")
	f.StringVar(&o.label, "label", "", "set the label of the phases (at most 31 bytes; default: the name of the function)")
	f.UintVar(&o.labelArgument, "label-argument", 0, "label the phases with this argument, 1 to 6, of the wrapped function, which must be a text")
	f.StringVarP(&o.output, "output", "o", "-", "write to this file; -: to standard output")
	return c
}

func (o shimOptions) parse() (*shim, error) {
	s := &shim{LabelArgument: o.labelArgument, Slots: 64, Command: "tslab shim"}
	if len(o.functions)+len(o.callbacks) == 0 {
		return nil, errors.New("shim needs --function or --callback; see tslab shim --help")
	}
	if len(o.label) > 31 || strings.ContainsFunc(o.label, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == '?' }) {
		return nil, errors.New("--label takes at most 31 bytes of plain text")
	}
	if o.labelArgument > 6 {
		return nil, errors.New("--label-argument takes 1 to 6")
	}
	seen := map[string]bool{}
	add := func(name string, argument uint) error {
		if !identifier.MatchString(name) {
			return fmt.Errorf("%q is not the name of a function", name)
		}
		if seen[name] {
			return fmt.Errorf("%s is given twice", name)
		}
		seen[name] = true
		label := o.label
		if label == "" {
			label = name[:min(len(name), 31)]
		}
		s.Functions = append(s.Functions, shimFunction{name, label, argument})
		return nil
	}
	for _, name := range o.functions {
		if err := add(name, 0); err != nil {
			return nil, err
		}
		s.Command += " --function " + name
	}
	for _, text := range o.callbacks {
		name, number, _ := strings.Cut(text, ":")
		argument, err := strconv.ParseUint(number, 10, 8)
		if err != nil || argument < 1 || argument > 6 {
			return nil, fmt.Errorf("--callback takes NAME:ARGUMENT with an argument from 1 to 6, not %q", text)
		}
		if err := add(name, uint(argument)); err != nil {
			return nil, err
		}
		s.Command += " --callback " + text
	}
	if o.label != "" {
		label := strings.ReplaceAll(o.label, "'", `'\''`)
		s.Command += " --label '" + strings.ReplaceAll(label, "*/", "* /") + "'" // in a comment
	}
	if o.labelArgument != 0 {
		s.Command += fmt.Sprintf(" --label-argument %d", o.labelArgument)
	}
	return s, nil
}

func (a *app) shim(o shimOptions) error {
	s, err := o.parse()
	if err != nil {
		return err
	}
	if o.output == "-" {
		return shimTemplate.Execute(a.out, s)
	}
	f, err := os.Create(o.output)
	if err != nil {
		return err
	}
	err = shimTemplate.Execute(f, s)
	return errors.Join(err, f.Close())
}
