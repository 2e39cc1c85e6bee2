package heap

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// public are the functions of this library that a program calls to get memory; pprof leaves them out, too, with all that they call. Not
// all names that begin with slab_ are ours.
const public = `(slab|epoch_domain|slab_lane|slab_run)_(malloc0?|calloc|realloc|reallocarray|aligned_alloc|memdup|strn?dup|v?asprintf|array|array_add|move|alloc_obj)(_[a-z]+)*|` +
	`alloc_obj(_[a-z]+)*`

// ours are those within it, too, which are in the program's file where it is linked statically.
const ours = public + `|ts[ip]_[a-z_]+(\.[a-z0-9.]+)?`

var isPublic, isOurs = regexp.MustCompile("^(" + public + ")$"), regexp.MustCompile("^(" + ours + ")$")

// own are at most so many frames of the library on top of a stack.
const own = 12

// Trim leaves out what the library has on top of each stack, so that the innermost function is the one that asked for the memory: what
// lies in its file, and names on top. A stack of nothing else keeps its outermost function. Names within the library may be the
// program's where the library has a file of its own: a tsp_solve may solve a problem.
func Trim(p *profile.Profile) {
	p.DropFrames = ours
	names := isOurs
	if slices.ContainsFunc(p.Mapping, isLibrary) {
		p.DropFrames, names = public, isPublic
	}
	for _, s := range p.Sample {
		cut := 0
		for i, l := range s.Location[:min(len(s.Location), own)] {
			if isLibrary(l.Mapping) || (cut == i && isNamed(l, names)) {
				cut = i + 1
			}
		}
		s.Location = s.Location[min(cut, len(s.Location)-min(len(s.Location), 1)):]
	}
}

func isLibrary(m *profile.Mapping) bool {
	return m != nil && strings.HasPrefix(filepath.Base(m.File), "libtemporal_slab")
}

func isNamed(l *profile.Location, names *regexp.Regexp) bool {
	return slices.ContainsFunc(l.Line, func(line profile.Line) bool {
		return line.Function != nil && names.MatchString(line.Function.Name)
	})
}
