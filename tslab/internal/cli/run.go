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
		Long: `Runs a program that knows nothing of temporal-slab with ` + preloadName + ` as its malloc, in
place of tslab itself, and shows its statistics: 'tslab ls' finds it, and all that it starts.

The library is looked for beside tslab, in the folders of the build and of the installation, then where the system
has libraries. A program that is linked statically, or that has more rights than its user, takes no library from
outside and is refused.`,
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
	f.StringVar(&o.label, "label", "", "name the phase that everything is allocated in (31 bytes at most)")
	f.StringVar(&o.options, "options", "", "options of the allocator beside those of TSLAB_OPTIONS: NAME=VALUE,...")
	f.StringVar(&o.library, "library", "", "preload this file")
	f.BoolVar(&o.deepbind, "keep-deepbind", false, "leave RTLD_DEEPBIND to dlopen: such libraries use libc's malloc then")
	f.BoolVar(&o.hidden, "no-segment", false, "do not show statistics: tslab does not find the program then")
	f.BoolVar(&o.print, "print", false, "print the variables that would be set, for a shell or a unit file, and run nothing")
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
				return "", fmt.Errorf("%q cannot be preloaded: ld.so takes a space or a colon for the end of a name", path)
			}
			return path, nil
		}
	}
	if asked != "" {
		return "", fmt.Errorf("there is no library %s", asked)
	}
	return "", errors.New(preloadName + " is neither beside tslab nor where the system has libraries: 'make install' installs it, --library names it")
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
			return fmt.Errorf("%s has more rights than its user, so ld.so preloads nothing there", program)
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
		return fmt.Errorf("%s is no library", library)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return nil
		}
	}
	return fmt.Errorf("%s is linked statically, so nothing can be preloaded", program)
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
		return "is no program: it may not be executed"
	}
	return "there is no such program"
}

func (a *app) run(o runOptions, args []string) error {
	if len(o.label) > 31 {
		return fmt.Errorf("--label takes 31 bytes, not %d", len(o.label))
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
