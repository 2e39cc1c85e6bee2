// Command checker reads the histories that record.c writes and decides whether each is linearizable: whether some order
// of its calls, in which every call takes effect at one instant between its two stamps, explains all results by the
// contract of docs/semantics.md. The decision is made by porcupine (https://github.com/anishathalye/porcupine), which
// implements the algorithm of Wing and Gong with Lowe's memory of states.
//
// Three kinds of sequential machines stand for the contract:
//
//	phase   open or closed: an allocation succeeds while it is open and is refused afterwards
//	object  not made, live or ended: a free ends a live object once and is refused otherwise; a handle leads to its
//	        live object or to nothing; a release of its phase ends it
//	scopes  a number: an attach succeeds while a scope is detached
//
// A release acts on its phase and on each object by itself: calls that overlap it may land on either side, object by
// object. Objects in slabs that it has deferred end when the calls return that were inside as it was made. Two things are checked besides, without a search: two objects that surely live at the same time have
// different addresses, and the walk at the end counts what must be live then.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const phases = 4

// input is a call; part says on which machine this copy of it acts.
type input struct {
	what     string
	phase    int
	argument uint64
	part     string
}

type output struct{ result, handle uint64 }

// state of a machine: of a phase 0 open, 1 closed; of an object 0 not made, 1 live, 2 ended; of scopes their number.
type state struct {
	now     int
	address uint64 // of an object
}

func stepPhase(s state, in input, out output) (bool, state) {
	if in.what == "drain" || in.what == "release" {
		return true, state{now: 1}
	}
	return (s.now == 0) == (out.result != 0), s
}

func stepObject(s state, in input, out output) (bool, state) {
	live := s.now == 1
	switch in.what {
	case "alloc", "malloc":
		return s.now == 0, state{now: 1, address: out.result}
	case "free", "give":
		if live {
			s.now = 2
		}
		return live == (out.result == 1), s
	case "look":
		return live && out.result == s.address || !live && out.result == 0, s
	case "release":
		if live {
			s.now = 2
		}
		return true, s
	}
	return false, s
}

func stepScopes(s state, in input, out output) (bool, state) {
	if in.what == "detach" {
		return out.result == 1, state{now: s.now + 1}
	}
	return (s.now > 0) == (out.result == 1), state{now: s.now - int(out.result)}
}

func model(tokens int) porcupine.Model {
	return porcupine.Model{
		Partition: partition,
		Init:      func() any { return state{} },
		Step: func(s, in, out any) (bool, any) {
			switch i, o := in.(input), out.(output); i.part {
			case "phase":
				ok, next := stepPhase(s.(state), i, o)
				return ok, next
			case "object":
				ok, next := stepObject(s.(state), i, o)
				return ok, next
			default:
				now := s.(state)
				now.now += tokens
				ok, next := stepScopes(now, i, o)
				next.now -= tokens
				return ok, next
			}
		},
	}
}

func is(op porcupine.Operation, kinds ...string) bool {
	return slices.Contains(kinds, op.Input.(input).what)
}

func made(op porcupine.Operation) bool {
	return is(op, "alloc", "malloc") && op.Output.(output).result != 0
}

// partition gives each machine the calls that act on it.
func partition(history []porcupine.Operation) [][]porcupine.Operation {
	var parts [][]porcupine.Operation
	add := func(part string, has func(porcupine.Operation) bool) {
		var some []porcupine.Operation
		for _, op := range history {
			if has(op) {
				in := op.Input.(input)
				in.part = part
				op.Input = in
				some = append(some, op)
			}
		}
		if len(some) > 0 {
			parts = append(parts, some)
		}
	}
	for k := range phases {
		add("phase", func(op porcupine.Operation) bool {
			return is(op, "alloc", "malloc", "drain", "release") && op.Input.(input).phase == k
		})
	}
	add("scopes", func(op porcupine.Operation) bool { return is(op, "attach", "detach") })
	handles := map[uint64]int{} // to the phase, or -1 for a handle that no call has returned
	for _, op := range history {
		if is(op, "free", "look") {
			if _, known := handles[op.Input.(input).argument]; !known {
				handles[op.Input.(input).argument] = -1
			}
		}
		if made(op) && is(op, "alloc") {
			handles[op.Output.(output).handle] = op.Input.(input).phase
		}
	}
	settled := settle(history)
	for handle, phase := range handles {
		history = settled
		add("object", func(op porcupine.Operation) bool {
			in, out := op.Input.(input), op.Output.(output)
			return is(op, "free", "look") && in.argument == handle || is(op, "alloc") && made(op) && out.handle == handle ||
				is(op, "release") && in.phase == phase
		})
	}
	return parts
}

// settle gives releases that have deferred slabs the time until the calls have returned that overlapped them.
func settle(history []porcupine.Operation) []porcupine.Operation {
	settled := slices.Clone(history)
	for i, end := range history {
		if !is(end, "release") || end.Input.(input).argument == 0 {
			continue
		}
		for _, op := range history {
			if op.Call < end.Return && op.Return > end.Call {
				settled[i].Return = max(settled[i].Return, op.Return)
			}
		}
	}
	return settled
}

// life is when an object surely lives: from the return of its allocation to the call of what may have ended it.
type life struct {
	address, from, to uint64
	phase             int
}

// lives returns them, of objects by handle and by pointer, and how many of each phase were freed.
func lives(history []porcupine.Operation) (all []life, freed [phases]int) {
	ends := func(k int) uint64 {
		first := ^uint64(0)
		for _, op := range history {
			if is(op, "release") && op.Input.(input).phase == k {
				first = min(first, uint64(op.Call))
			}
		}
		return first
	}
	for _, op := range history {
		if !made(op) {
			continue
		}
		in, out := op.Input.(input), op.Output.(output)
		l := life{address: out.result, from: uint64(op.Return), to: ends(in.phase), phase: in.phase}
		for _, end := range history {
			e := end.Input.(input)
			byHandle := is(end, "free") && is(op, "alloc") && e.argument == out.handle
			byPointer := is(end, "give") && is(op, "malloc") && e.argument == out.result && end.Call > op.Return && end.ClientId == op.ClientId
			if (byHandle || byPointer) && end.Output.(output).result == 1 {
				freed[in.phase]++
				l.to = min(l.to, uint64(end.Call))
				break // of a thread's own pointer the first free that follows
			}
		}
		all = append(all, l)
	}
	return all, freed
}

// contradiction says what is wrong with addresses and counts, or nothing.
func contradiction(history []porcupine.Operation) string {
	all, freed := lives(history)
	for i, a := range all {
		for _, b := range all[:i] {
			if a.address == b.address && a.from < b.to && b.from < a.to {
				return fmt.Sprintf("two live objects have the address %#x", a.address)
			}
		}
	}
	for _, op := range history {
		if is(op, "give") && op.Output.(output).result != 1 {
			return "a thread's own live object could not be freed"
		}
		if !is(op, "count") {
			continue
		}
		k, want := op.Input.(input).phase, 0
		released := slices.ContainsFunc(history, func(o porcupine.Operation) bool {
			return is(o, "release") && o.Input.(input).phase == k
		})
		if !released {
			for _, l := range all {
				if l.phase == k {
					want++
				}
			}
			want -= freed[k]
		}
		if uint64(want) != op.Output.(output).result {
			return fmt.Sprintf("phase %d: %d objects counted, %d must live", k, op.Output.(output).result, want)
		}
	}
	return ""
}

// read returns the next history and its seed; no operations at the end of the input.
func read(lines *bufio.Scanner) (seed uint64, calls []porcupine.Operation, err error) {
	begun := false
	for lines.Scan() {
		line := lines.Text()
		switch {
		case line == "end" && begun:
			return seed, calls, nil
		case strings.HasPrefix(line, "history ") && !begun:
			begun = true
			if _, err := fmt.Sscanf(line, "history %d", &seed); err != nil {
				return 0, nil, fmt.Errorf("%q: %w", line, err)
			}
		default:
			var op porcupine.Operation
			var in input
			var out output
			_, err := fmt.Sscanf(line, "%d %d %d %s %d %d %d %d", &op.ClientId, &op.Call, &op.Return, &in.what, &in.phase,
				&in.argument, &out.result, &out.handle)
			if err != nil || !begun || in.phase < 0 || in.phase >= phases {
				return 0, nil, fmt.Errorf("%q is not a call of a history: %v", line, err)
			}
			op.Input, op.Output = in, out
			calls = append(calls, op)
		}
	}
	if begun {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return 0, nil, lines.Err()
}

func main() {
	patience := flag.Duration("patience", time.Minute, "how long a history may take; one that takes longer is a failure")
	tokens := flag.Int("tokens", 2, "scopes that are detached at the start")
	flag.Parse()
	if flag.NArg() != 0 {
		fmt.Fprintln(os.Stderr, "checker: takes no argument; histories come on standard input")
		os.Exit(2)
	}

	lines := bufio.NewScanner(os.Stdin)
	checked, calls, refused := 0, 0, 0
	m := model(*tokens)
	for {
		seed, history, err := read(lines)
		if err != nil {
			fmt.Fprintln(os.Stderr, "checker:", err)
			os.Exit(2)
		}
		if history == nil {
			break
		}
		checked++
		calls += len(history)
		wrong := contradiction(history)
		search := slices.DeleteFunc(slices.Clone(history), func(op porcupine.Operation) bool { return is(op, "count", "give") })
		switch porcupine.CheckOperationsTimeout(m, search, *patience) {
		case porcupine.Illegal:
			wrong = "no order of the calls explains the results"
		case porcupine.Unknown:
			wrong = "not decided in time"
		}
		if wrong != "" {
			refused++
			fmt.Printf("history %d: %s\n", seed, wrong)
		}
	}
	fmt.Printf("%d histories, %d calls: %d refused\n", checked, calls, refused)
	if refused > 0 || checked == 0 {
		os.Exit(1)
	}
}
