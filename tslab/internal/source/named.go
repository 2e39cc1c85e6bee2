package source

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/units"
)

// Candidate is a process that shows its statistics.
type Candidate struct {
	Pid     int
	Command string
}

// Candidates are all of them.
func Candidates() []Candidate {
	list, _ := segment.List()
	var out []Candidate
	for _, p := range list {
		out = append(out, Candidate{p.Pid, p.Command})
		p.Segment.Close()
	}
	return out
}

// Named finds the one process of a name: the program's, else a part of its command line.
func Named(name string) (int, error) {
	return named(name, Candidates())
}

func named(name string, list []Candidate) (int, error) {
	if name == "" {
		return 0, fmt.Errorf("an empty name names no process")
	}
	var exact, part []Candidate
	for _, c := range list {
		program, _, _ := strings.Cut(c.Command, " ")
		if program == name {
			exact = append(exact, c)
		}
		if strings.Contains(c.Command, name) {
			part = append(part, c)
		}
	}
	found := exact
	if len(found) == 0 {
		found = part
	}
	switch len(found) {
	case 1:
		return found[0].Pid, nil
	case 0:
		return 0, fmt.Errorf("no process that shows its statistics is called %q%s", name, near(name, list))
	}
	var words []string
	for _, c := range found[:min(len(found), 8)] {
		words = append(words, strconv.Itoa(c.Pid))
	}
	text := strings.Join(words, ", ")
	if n := len(found) - len(words); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return 0, fmt.Errorf("%d processes are called %q: %s; name one by its id", len(found), name, text)
}

// near goes on with what may have been meant, or which there are.
func near(name string, list []Candidate) string {
	var programs []string
	for _, c := range list {
		program, _, _ := strings.Cut(c.Command, " ")
		if !slices.Contains(programs, program) {
			programs = append(programs, program)
		}
	}
	best, least := "", 3
	for _, p := range programs {
		if d := units.Distance(name, p); d < least {
			best, least = p, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("; did you mean %q?", units.Text(best))
	case len(programs) == 0:
		return "; none of this user shows any: start one with TSLAB_OPTIONS=segment=1"
	}
	return "; there are: " + units.Text(strings.Join(programs[:min(len(programs), 8)], " "))
}
