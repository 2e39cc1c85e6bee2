package cli

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"temporal-slab/tslab/internal/options"
)

const preloadName = "libtemporal_slab_preload.so"

type runOptions struct {
	label, library, options string
	deepbind, hidden, print bool
}

func (a *app) runCommand() *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use: "run [--label L] COMMAND [ARGUMENT...]", Short: "Run a program with temporal-slab as its malloc", DisableFlagsInUseLine: true,
		Long: `Runs an unchanged program with ` + preloadName + ` as its malloc. The program takes the place of
tslab itself. The program and the processes that it starts publish their statistics, so 'tslab ls' lists them.

tslab searches for the library in its own directory, in the directories of the build and of the installation, and then
in LD_LIBRARY_PATH and the library directories of the system. tslab refuses programs that cannot load the library:
programs that are linked statically, and programs with more privileges than their user.`,
		Example: `  tslab run python3 batch.py
  tslab run --label web nginx -g 'daemon off;'
  tslab run --options profile_bytes=512k ./server & tslab profile --pid $!`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && !o.print {
				return errors.New("run needs a command; see tslab run --help")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.run(o, args) },
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.StringVar(&o.label, "label", "", "set the label of the endless phase, which holds all memory outside of marked phases (at most 31 bytes)")
	f.StringVar(&o.options, "options", "", "add these options of the allocator to those of TSLAB_OPTIONS: NAME=VALUE,...")
	f.StringVar(&o.library, "library", "", "preload this file")
	f.BoolVar(&o.deepbind, "keep-deepbind", false, "let dlopen respect RTLD_DEEPBIND; libraries opened with this flag then use libc's malloc")
	f.BoolVar(&o.hidden, "no-segment", false, "do not publish statistics; tslab then cannot find the program")
	f.BoolVar(&o.print, "print", false, "print the variables that run would set, for a shell or a unit file, and run nothing")
	_ = c.MarkFlagFilename("library", "so")
	return c
}

// preloadLibrary is the path of the library to preload.
func preloadLibrary(asked string) (string, error) {
	places := []string{asked}
	if asked == "" {
		places = nil
		if self, err := os.Executable(); err == nil {
			if real, err := filepath.EvalSymlinks(self); err == nil {
				self = real
			}
			dir := filepath.Dir(self)
			for _, at := range []string{".", "install", "gcc-release", "../lib", "../lib64", "../lib/*-linux-gnu"} {
				places = append(places, filepath.Join(dir, at, preloadName))
			}
		}
		for _, at := range append(filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")), "/usr/local/lib", "/usr/local/lib64",
			"/usr/local/lib/*-linux-gnu", "/usr/lib", "/usr/lib64", "/usr/lib/*-linux-gnu", "/usr/lib/*-linux-gnu/temporal-slab") {
			places = append(places, filepath.Join(at, preloadName))
		}
	}
	for _, pattern := range places {
		found, _ := filepath.Glob(pattern)
		if asked != "" {
			found = []string{asked}
		}
		for _, path := range found {
			if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
				continue
			}
			path, err := filepath.Abs(path)
			if err != nil {
				return "", err
			}
			if strings.ContainsAny(path, " :") {
				return "", fmt.Errorf("%q cannot be preloaded: ld.so treats a space or a colon as the end of a name", path)
			}
			return path, nil
		}
	}
	if asked != "" {
		return "", fmt.Errorf("there is no library %s", asked)
	}
	return "", errors.New(preloadName + " is neither near tslab nor in a library directory of the system: install it with 'make install', or name it with --library")
}

// takesLibraries says why the program would run without the library.
func takesLibraries(program, library string) error {
	info, err := os.Stat(program)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		other := (info.Mode()&os.ModeSetuid != 0 && int(st.Uid) != os.Getuid()) || (info.Mode()&os.ModeSetgid != 0 && int(st.Gid) != os.Getgid())
		if other {
			return fmt.Errorf("%s has more privileges than its user, so ld.so does not preload a library into it", program)
		}
	}
	f, err := elf.Open(program)
	if err != nil {
		return nil // a script: what runs it is preloaded
	}
	defer f.Close()
	if lib, err := elf.Open(library); err == nil {
		defer lib.Close()
		if lib.Machine != f.Machine || lib.Class != f.Class {
			return fmt.Errorf("%s is a program for %v, and %s is for %v", program, f.Machine, filepath.Base(library), lib.Machine)
		}
	} else {
		return fmt.Errorf("%s is not a library", library)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return nil
		}
	}
	return fmt.Errorf("%s is linked statically, so no library can be preloaded", program)
}

// variables are those that a program is run with, beside the ones that are there.
func (o *runOptions) variables(library string) []string {
	preload := library
	if there := os.Getenv("LD_PRELOAD"); there != "" {
		preload += ":" + there
	}
	var words []string
	for _, text := range []string{os.Getenv("TSLAB_OPTIONS"), o.options} {
		if text != "" {
			words = append(words, text)
		}
	}
	if !o.hidden && !strings.Contains(","+strings.Join(words, ","), ",segment=") {
		words = append([]string{"segment=1"}, words...)
	}
	list := []string{"LD_PRELOAD=" + preload}
	if len(words) != 0 {
		list = append(list, "TSLAB_OPTIONS="+strings.Join(words, ","))
	}
	if o.label != "" {
		list = append(list, "TSLAB_PRELOAD_LABEL="+o.label)
	}
	if o.deepbind {
		list = append(list, "TSLAB_PRELOAD_DEEPBIND=keep")
	}
	return list
}

// notRun says why a name is that of no program.
func notRun(err error) string {
	switch {
	case errors.Is(err, syscall.EISDIR):
		return "is a directory"
	case errors.Is(err, fs.ErrPermission):
		return "is not a program: it is not executable"
	}
	return "there is no such program"
}

func (a *app) run(o runOptions, args []string) error {
	if len(o.label) > 31 {
		return fmt.Errorf("--label takes at most 31 bytes, not %d", len(o.label))
	}
	if wrong := options.Ignored(o.options); len(wrong) != 0 {
		return fmt.Errorf("--options: %s", strings.Join(wrong, "; "))
	}
	library, err := preloadLibrary(o.library)
	if err != nil {
		return err
	}
	variables := o.variables(library)
	if o.print {
		for _, v := range variables {
			fmt.Fprintln(a.out, v)
		}
		return nil
	}
	program, err := exec.LookPath(args[0])
	if err != nil {
		return fmt.Errorf("%s: %s", args[0], notRun(err))
	}
	if err := takesLibraries(program, library); err != nil {
		return err
	}
	if err := a.out.Flush(); err != nil {
		return err
	}
	environment := os.Environ()
	for _, v := range variables {
		name, _, _ := strings.Cut(v, "=")
		kept := environment[:0]
		for _, entry := range environment {
			if !strings.HasPrefix(entry, name+"=") {
				kept = append(kept, entry)
			}
		}
		environment = append(kept, v)
	}
	return fmt.Errorf("%s: %w", program, syscall.Exec(program, args, environment))
}
