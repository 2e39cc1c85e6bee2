package heap

import (
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	"golang.org/x/sys/unix"
)

const (
	maxSymbols = 256 << 20       // bytes of a table of symbols
	patience   = 5 * time.Second // for one file: it may lie on a disk that does not answer
)

// object is what a mapped file says of its functions.
type object struct {
	functions []elf.Symbol // by address
	loads     []elf.ProgHeader
	buildID   string
}

// Symbolize names the functions of a profile. pid: the process, in whose view of the file system the mapped files are
// looked for; 0: in ours. Files without names, and those that cannot be read, are told in a line each.
func Symbolize(p *profile.Profile, pid int) []string {
	s := symbolizer{pid: pid, names: map[string]*profile.Function{}}
	for _, f := range p.Function {
		s.names[f.Name] = f
	}
	var complaints []string
	for _, m := range p.Mapping {
		var here []*profile.Location
		for _, l := range p.Location {
			if l.Mapping == m && len(l.Line) == 0 {
				here = append(here, l)
			}
		}
		if len(here) == 0 || m.HasFunctions {
			continue
		}
		o, err := s.load(m)
		if err != nil {
			complaints = append(complaints, fmt.Sprintf("no names of functions in %s: %v", m.File, err))
			continue
		}
		if m.BuildID == "" {
			m.BuildID = o.buildID
		}
		for _, l := range here {
			if name := o.find(l.Address - m.Start + m.Offset); name != "" {
				l.Line = []profile.Line{{Function: s.function(p, name)}}
				m.HasFunctions = true
			}
		}
	}
	return complaints
}

type symbolizer struct {
	pid   int
	names map[string]*profile.Function
}

func (s *symbolizer) function(p *profile.Profile, name string) *profile.Function {
	f := s.names[name]
	if f == nil {
		f = &profile.Function{ID: uint64(len(p.Function) + 1), Name: name, SystemName: name}
		p.Function = append(p.Function, f)
		s.names[name] = f
	}
	return f
}

// paths are where the file of a mapping may be found, the surest first.
func (s *symbolizer) paths(m *profile.Mapping) []string {
	if s.pid == 0 {
		return []string{m.File}
	}
	proc := fmt.Sprintf("/proc/%d", s.pid)
	list := []string{fmt.Sprintf("%s/map_files/%x-%x", proc, m.Start, m.Limit)} // the file itself; for root
	if exe, err := os.Readlink(proc + "/exe"); err == nil && exe == m.File {
		list = append(list, proc+"/exe") // also when it has been replaced since
	}
	if !strings.HasSuffix(m.File, " (deleted)") {
		list = append(list, proc+"/root"+m.File)
	}
	return list
}

func (s *symbolizer) load(m *profile.Mapping) (*object, error) {
	type result struct {
		o   *object
		err error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		for _, path := range s.paths(m) {
			if r.o, r.err = read(path); r.err == nil {
				break
			}
		}
		done <- r
	}()
	select {
	case r := <-done:
		return r.o, r.err
	case <-time.After(patience):
		return nil, fmt.Errorf("its file did not answer within %s", patience)
	}
}

// read trusts nothing in the file.
func read(path string) (o *object, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			o, err = nil, fmt.Errorf("damaged (%v)", fault)
		}
	}()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("no regular file")
	}
	e, err := elf.NewFile(f)
	if err != nil {
		return nil, err
	}
	o = &object{buildID: buildID(e)}
	for _, s := range e.Sections {
		table := s.Type == elf.SHT_SYMTAB || s.Type == elf.SHT_DYNSYM || s.Type == elf.SHT_STRTAB
		if table && (s.FileSize > maxSymbols || s.Flags&elf.SHF_COMPRESSED != 0) {
			return nil, errors.New("its table of symbols is too large")
		}
	}
	symbols, err := e.Symbols()
	if len(symbols) == 0 {
		symbols, err = e.DynamicSymbols()
	}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value != 0 && s.Name != "" {
			o.functions = append(o.functions, s)
		}
	}
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD {
			o.loads = append(o.loads, p.ProgHeader)
		}
	}
	if len(o.functions) == 0 {
		if err == nil || errors.Is(err, elf.ErrNoSymbols) {
			err = errors.New("it is stripped")
		}
		return nil, err
	}
	slices.SortStableFunc(o.functions, func(a, b elf.Symbol) int {
		switch {
		case a.Value < b.Value:
			return -1
		case a.Value > b.Value:
			return 1
		}
		return 0
	})
	return o, nil
}

// find is the function at an offset of the file, or "".
func (o *object) find(offset uint64) string {
	for _, l := range o.loads {
		if offset < l.Off || offset-l.Off >= l.Filesz {
			continue
		}
		at := offset - l.Off + l.Vaddr
		n, _ := slices.BinarySearchFunc(o.functions, at, func(s elf.Symbol, at uint64) int {
			if s.Value <= at {
				return -1
			}
			return 1
		})
		if n == 0 {
			continue
		}
		if f := o.functions[n-1]; f.Size == 0 || at-f.Value < f.Size {
			return f.Name
		}
	}
	return ""
}

// buildID is the one of the note .note.gnu.build-id in hexadecimal digits, or "".
func buildID(e *elf.File) string {
	s := e.Section(".note.gnu.build-id")
	if s == nil || s.Size > 4096 {
		return ""
	}
	b, err := s.Data()
	if err != nil || len(b) < 16 {
		return ""
	}
	name, size := uint64(e.ByteOrder.Uint32(b)), uint64(e.ByteOrder.Uint32(b[4:]))
	if name != 4 || size > uint64(len(b)-16) {
		return ""
	}
	return hex.EncodeToString(b[16 : 16+size])
}
