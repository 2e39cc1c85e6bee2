package heap

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/pprof/profile"
)

// ours are the functions of this library that a program calls to get memory, and those of malloc that the preload library has; pprof
// leaves them out, too, with all that they call. Not all names that begin with slab_ are ours.
const ours = `(slab|epoch_domain|slab_lane|slab_run)_(malloc0?|calloc|realloc|reallocarray|aligned_alloc|memdup|strn?dup|v?asprintf|array|array_add|move|alloc_obj)(_[a-z]+)*|` +
	`alloc_obj(_[a-z]+)*|ts[ip]_[a-z_]+(\.[a-z0-9.]+)?`

var isOurs = regexp.MustCompile("^(" + ours + ")$")

// own are at most so many frames of the library on top of a stack.
const own = 12

// Trim leaves out what the library has on top of each stack, so that the innermost function is the one that asked for the memory.
// A stack of nothing else keeps its outermost function.
func Trim(p *profile.Profile) {
	p.DropFrames = ours
	for _, s := range p.Sample {
		cut := 0
		for i, l := range s.Location[:min(len(s.Location), own)] {
			if isLibrary(l) {
				cut = i + 1
			}
		}
		s.Location = s.Location[min(cut, len(s.Location)-min(len(s.Location), 1)):]
	}
}

func isLibrary(l *profile.Location) bool {
	if l.Mapping != nil && strings.HasPrefix(filepath.Base(l.Mapping.File), "libtemporal_slab") {
		return true
	}
	for _, line := range l.Line {
		if line.Function != nil && isOurs.MatchString(line.Function.Name) {
			return true
		}
	}
	return false
}
