package heap

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// Label is what the phases of one label have and had, of one maker.
type Label struct {
	Name      string        `json:"label"`
	Maker     string        `json:"maker,omitempty"`     // label of the scopes that made it by slab_malloc_outside
	Allocator string        `json:"allocator,omitempty"` // among several
	Values    [Values]int64 `json:"-"`
}

// Function is what was allocated by a function itself, and by all that it called.
type Function struct {
	Name string `json:"function"`
	Flat int64  `json:"flat"`
	Cum  int64  `json:"cum"`
}

// Report sums a profile up.
type Report struct {
	Total     [Values]int64
	InUse     int  // samples that are in use
	Several   bool // allocators
	Made      bool // something has a maker
	Labels    []Label
	Functions []Function
}

// Only is what functions are shown of; nil: any.
type Only struct{ Label, Maker *string }

// Has tells whether functions of a row are shown.
func (o Only) Has(l *Label) bool {
	return (o.Label == nil || *o.Label == l.Name) && (o.Maker == nil || *o.Maker == l.Maker)
}

// Sum is the report: functions by a value, of some labels only when they are named, labels of all.
func Sum(p *profile.Profile, value int, only Only) *Report {
	r := &Report{}
	labels, functions := map[[3]string]*Label{}, map[string]*Function{}
	for _, s := range p.Sample {
		key := [3]string{tag(s, "label"), tag(s, "maker"), tag(s, "allocator")}
		l := labels[key]
		if l == nil {
			l = &Label{Name: key[0], Maker: key[1], Allocator: key[2]}
			labels[key] = l
			r.Made = r.Made || l.Maker != ""
			r.Several = r.Several || l.Allocator != ""
		}
		for k, v := range s.Value {
			l.Values[k] += v
			r.Total[k] += v
		}
		if len(s.NumLabel) != 0 {
			r.InUse++
		}
		if only.Has(l) {
			add(functions, s, s.Value[value])
		}
	}
	for _, l := range labels {
		r.Labels = append(r.Labels, *l)
	}
	for _, f := range functions {
		if f.Cum != 0 {
			r.Functions = append(r.Functions, *f)
		}
	}
	slices.SortFunc(r.Labels, func(a, b Label) int {
		return cmp.Or(cmp.Compare(b.Values[value], a.Values[value]), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Maker, b.Maker), cmp.Compare(a.Allocator, b.Allocator))
	})
	slices.SortFunc(r.Functions, func(a, b Function) int {
		return cmp.Or(cmp.Compare(b.Flat, a.Flat), cmp.Compare(b.Cum, a.Cum), cmp.Compare(a.Name, b.Name))
	})
	return r
}

// Escape is what of one label, by one stack, has outlived the end of its phase.
type Escape struct {
	Label       string   `json:"label"`
	Allocator   string   `json:"allocator,omitempty"`
	Objects     int64    `json:"escaped_objects"`
	Bytes       int64    `json:"escaped_bytes"`
	LiveObjects int64    `json:"live_objects"` // of these, now
	LiveBytes   int64    `json:"live_bytes"`
	Stack       []string `json:"stack"` // the innermost first
}

// Escapes are those of a profile that has them, what escaped most first.
func Escapes(p *profile.Profile, only Only) []Escape {
	sums := map[string]*Escape{}
	for _, s := range p.Sample {
		l := Label{Name: tag(s, "label"), Maker: tag(s, "maker")}
		if !only.Has(&l) {
			continue
		}
		stack := []string{}
		for _, at := range s.Location {
			stack = append(stack, namesOf(at)...)
		}
		key := strings.Join(append([]string{l.Name, tag(s, "allocator")}, stack...), "\x00")
		e := sums[key]
		if e == nil {
			e = &Escape{Label: l.Name, Allocator: tag(s, "allocator"), Stack: stack}
			sums[key] = e
		}
		e.Objects += s.Value[EscapedObjects]
		e.Bytes += s.Value[EscapedSpace]
		if tag(s, "phase") == "ended" {
			e.LiveObjects += s.Value[InuseObjects]
			e.LiveBytes += s.Value[InuseSpace]
		}
	}
	list := []Escape{}
	for _, e := range sums {
		if e.Objects != 0 || e.Bytes != 0 {
			list = append(list, *e)
		}
	}
	slices.SortFunc(list, func(a, b Escape) int {
		return cmp.Or(cmp.Compare(b.Objects, a.Objects), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Label, b.Label), slices.Compare(a.Stack, b.Stack))
	})
	return list
}

func tag(s *profile.Sample, key string) string {
	if l := s.Label[key]; len(l) != 0 {
		return l[0]
	}
	return ""
}

// add counts a function once for a stack, however often it is on it.
func add(functions map[string]*Function, s *profile.Sample, v int64) {
	seen := map[string]bool{}
	for i, l := range s.Location {
		for k, name := range namesOf(l) {
			f := functions[name]
			if f == nil {
				f = &Function{Name: name}
				functions[name] = f
			}
			if i == 0 && k == 0 {
				f.Flat += v
			}
			if !seen[name] {
				f.Cum += v
			}
			seen[name] = true
		}
	}
}

// namesOf are the functions at a place, inlined ones first; without any its file, as pprof writes it, or its address.
func namesOf(l *profile.Location) []string {
	var names []string
	for _, line := range l.Line {
		if line.Function != nil && line.Function.Name != "" {
			names = append(names, line.Function.Name)
		}
	}
	switch {
	case len(names) != 0:
	case l.Mapping != nil && l.Mapping.File != "":
		names = append(names, "["+filepath.Base(l.Mapping.File)+"]")
	default:
		names = append(names, fmt.Sprintf("%#x", l.Address))
	}
	return names
}
