package heap

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"temporal-slab/tslab/internal/segment"
)

var errLate = fmt.Errorf("the files did not answer within %s", patience)

// For all files: some may lie on a disk that does not answer.
const patience = 10 * time.Second

// Symbolize names the functions of a profile. pid: the process, in whose view of the file system the mapped files are
// looked for; 0: in ours. Files without names, and those that cannot be read, are told in a line each.
func Symbolize(p *profile.Profile, pid int) []string {
	s := symbolizer{pid: pid, names: map[string]*profile.Function{}, late: time.After(patience)}
	if pid != 0 {
		s.mapped, _ = segment.Mappings(pid)
	}
	for _, f := range p.Function {
		s.names[f.Name] = f
	}
	places := map[*profile.Mapping][]*profile.Location{}
	for _, l := range p.Location {
		if l.Mapping != nil && len(l.Line) == 0 {
			places[l.Mapping] = append(places[l.Mapping], l)
		}
	}
	var complaints []string
	for _, m := range p.Mapping {
		if len(places[m]) == 0 || m.HasFunctions {
			continue
		}
		o, err := s.load(m)
		if err != nil {
			complaints = append(complaints, noNames(m.File, err))
			continue
		}
		if m.BuildID == "" {
			m.BuildID = o.buildID
		}
		for _, l := range places[m] {
			if name := o.find(l.Address - m.Start + m.Offset); name != "" {
				l.Line = []profile.Line{{Function: s.function(p, name)}}
				m.HasFunctions = true
			}
		}
		if o.exported && !isSystem(m.File) && slices.ContainsFunc(places[m], func(l *profile.Location) bool { return len(l.Line) == 0 }) {
			complaints = append(complaints, stripped(m.File, o.buildID))
		}
	}
	Trim(p)
	if line := shallow(p); line != "" {
		complaints = append(complaints, line)
	}
	return complaints
}

// isSystem: nobody misses the names of its functions, nor builds it anew.
func isSystem(file string) bool {
	name := filepath.Base(file)
	return strings.HasPrefix(name, "libc.so") || strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "libc-") || strings.HasPrefix(name, "libtemporal_slab")
}

const few = 8 // stacks that say nothing of a program

// shallow says which files keep no frame pointers, where that hides the callers of much; "": none.
func shallow(p *profile.Profile) string {
	ends, cut, all := map[string]int{}, 0, 0
	for _, s := range p.Sample {
		if len(s.Location) == 0 {
			continue
		}
		all++
		outermost := s.Location[len(s.Location)-1]
		if outermost.Mapping == nil || isSystem(outermost.Mapping.File) || len(s.Location) >= 32-own {
			continue
		}
		if names := namesOf(outermost); names[0] != "main" && names[0] != "_start" {
			ends[outermost.Mapping.File]++
			cut++
		}
	}
	if all < few || cut < all/4 {
		return ""
	}
	files := slices.SortedFunc(maps.Keys(ends), func(a, b string) int { return cmp.Or(cmp.Compare(ends[b], ends[a]), cmp.Compare(a, b)) })
	return fmt.Sprintf("of %d stacks %d end in the middle of %s, which keeps no frame pointers, so callers are missing: compile it with -fno-omit-frame-pointer", all, cut,
		strings.Join(files[:min(len(files), 3)], ", "))
}

type symbolizer struct {
	pid    int
	names  map[string]*profile.Function
	mapped []segment.Mapping // by the process now
	late   <-chan time.Time
	over   bool
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

// place is where the file of a mapping may be found, and its inode if it may be another's by now.
type place struct {
	path  string
	inode uint64
}

// places: the surest first. None when the process has it mapped no more, or its id is another's now.
func (s *symbolizer) places(m *profile.Mapping) []place {
	if s.pid == 0 {
		return []place{{m.File, 0}}
	}
	proc := fmt.Sprintf("/proc/%d", s.pid)
	for _, now := range s.mapped {
		if now.Low != m.Start || now.High != m.Limit || now.Offset != m.Offset || now.Path != m.File {
			continue
		}
		list := []place{{fmt.Sprintf("%s/map_files/%x-%x", proc, m.Start, m.Limit), 0}} // the file itself; for root
		if exe, err := os.Readlink(proc + "/exe"); err == nil && exe == m.File {
			list = append(list, place{proc + "/exe", 0}) // also when it has been replaced since
		}
		if !strings.HasSuffix(m.File, " (deleted)") {
			list = append(list, place{proc + "/root" + m.File, now.Inode})
		}
		return list
	}
	return nil
}

// debug names the functions of a file that is stripped by its debug symbols, where these are installed.
func (s *symbolizer) debug(o *object) bool {
	if !o.exported || len(o.buildID) < 4 {
		return false
	}
	roots := []string{""}
	if s.pid != 0 {
		roots = []string{fmt.Sprintf("/proc/%d/root", s.pid), ""}
	}
	for _, root := range roots {
		if d, err := read(debugFile(root, o.buildID), 0); err == nil && !d.exported && d.buildID == o.buildID {
			o.functions, o.names, o.exported = d.functions, d.names, false
			return true
		}
	}
	return false
}

func (s *symbolizer) load(m *profile.Mapping) (*object, error) {
	type result struct {
		o   *object
		err error
	}
	if s.over {
		return nil, errLate
	}
	done := make(chan result, 1)
	go func() {
		r := result{nil, errors.New("it is mapped no more")}
		for _, at := range s.places(m) {
			if r.o, r.err = read(at.path, at.inode); r.o != nil && s.debug(r.o) {
				r.err = nil
			}
			if r.err == nil {
				break
			}
		}
		done <- r
	}()
	select {
	case r := <-done:
		return r.o, r.err
	case <-s.late:
		s.over = true
		return nil, errLate
	}
}
