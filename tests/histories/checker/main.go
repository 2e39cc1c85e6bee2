// Command checker reads the histories that record.c writes and decides whether each is linearizable: whether some order
// of its calls, in which every call takes effect at one instant between its two stamps, explains all results by the
// contract of docs/semantics.md. The decision is made by porcupine (https://github.com/anishathalye/porcupine), which
// implements the algorithm of Wing and Gong with Lowe's memory of states.
//
// Six kinds of sequential machines stand for the contract:
//
//	phase   open or closed: an allocation succeeds while it is open and is refused afterwards
//	object  not made, live or ended: a free ends a live object once and is refused otherwise; a handle leads to its
//	        live object or to nothing; a release of its phase ends it
//	scopes  a number: an attach succeeds while a scope is detached
//	ring    which epoch is current, and which are open: a close of the current one moves the ring on, as an advance does,
//	        and an allocation in an epoch succeeds while it is open. The next epoch opens, the ring moves, then the old
//	        epoch closes
//	room    scopes inside of a domain, and whether its phase is open: the last exit ends it, and an enter opens it again;
//	        a reset takes the only scope inside, a forced close none and an open phase. A reset ends the phase first, then
//	        opens the next
//	budget  a number: an allocation of half of the budget succeeds while fewer than two live
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

// state of a machine: of a phase 0 open, 1 closed; of an object 0 not made, 1 live, 2 ended; of scopes and objects under a
// budget their number; of the ring its current epoch; of a room the scopes inside.
type state struct {
	now     int
	address uint64 // of an object
	open    uint64 // epochs of the ring, a bit each; of a room 1 while its phase has ended, 2 in the middle of a reset
	shuts   uint64 // calls that have moved the ring and not closed the old epoch yet, four bits for each epoch
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

const (
	ringSize = 8
	limit    = 2
)

func (s state) advanced() state {
	next := (s.now + 1) % ringSize
	s.now = next
	s.open |= 1 << next
	return s
}

func stepRing(s state, in input, out output) (bool, state) {
	switch in.what {
	case "ring":
		return true, state{now: int(out.result), open: in.argument}
	case "advance":
		s.shuts += 1 << (4 * s.now)
		s = s.advanced()
		return out.result == uint64(s.now), s
	case "current":
		return out.result == uint64(s.now), s
	case "close":
		s.shuts += 1 << (4 * in.argument)
		if in.argument == uint64(s.now) {
			s = s.advanced()
		}
		return out.result == 1, s
	case "opens": // the first step of advance and close, if the ring will move
		if in.argument == uint64((s.now+1)%ringSize) {
			s.open |= 1 << in.argument
		}
		return true, s
	case "shut": // the last step of advance and close
		may := s.shuts>>(4*in.argument)&15 != 0
		s.shuts -= 1 << (4 * in.argument)
		s.open &^= 1 << in.argument
		return may, s
	case "place":
		return out.result == s.open>>in.argument&1, s
	default: // any
		return out.result == 1, s
	}
}

func stepRoom(s state, in input, out output) (bool, state) {
	const open, ended, between = 0, 1, 2
	switch in.what {
	case "enter":
		s.now++
		if s.open == ended {
			s.open = open
		}
		return out.result == 1, s
	case "exit":
		s.now--
		if s.now == 0 {
			s.open = ended
		}
		return out.result == 1 && s.now >= 0, s
	case "rent":
		return (s.open == open) == (out.result != 0), s
	case "reset":
		may := s.now == 1 && s.open == open
		if may {
			s.open = between
		}
		return may == (out.result == 1), s
	case "renew": // the second step of a reset
		return s.open == between, state{now: s.now}
	default: // force
		may := s.now == 0 && s.open == open
		if may {
			s.open = ended
		}
		return may == (out.result == 1), s
	}
}

func stepBudget(s state, in input, out output) (bool, state) {
	if in.what == "credit" {
		return out.result == 1 && s.now > 0, state{now: s.now - 1}
	}
	return (s.now < limit) == (out.result == 1), state{now: s.now + int(out.result)}
}

func model(tokens int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, in, out any) (bool, any) {
			switch i, o := in.(input), out.(output); i.part {
			case "phase":
				ok, next := stepPhase(s.(state), i, o)
				return ok, next
			case "object":
				ok, next := stepObject(s.(state), i, o)
				return ok, next
			case "ring":
				ok, next := stepRing(s.(state), i, o)
				return ok, next
			case "room":
				ok, next := stepRoom(s.(state), i, o)
				return ok, next
			case "budget":
				ok, next := stepBudget(s.(state), i, o)
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

// moreSteps returns those of the calls that act in several.
func moreSteps(history []porcupine.Operation) (steps []porcupine.Operation) {
	for _, op := range history {
		in, out := op.Input.(input), op.Output.(output)
		opens := op
		switch {
		case in.what == "advance":
			opens.Input = input{what: "opens", argument: out.result}
			in = input{what: "shut", argument: (out.result + ringSize - 1) % ringSize}
			steps = append(steps, opens)
		case in.what == "close":
			opens.Input = input{what: "opens", argument: (in.argument + 1) % ringSize}
			in.what = "shut"
			steps = append(steps, opens)
		case in.what == "reset" && out.result == 1:
			in.what = "renew"
		default:
			continue
		}
		op.Input = in
		steps = append(steps, op)
	}
	return steps
}

// refusedForLast says whether an allocation that names an epoch may have been refused for the incarnation that the id named
// before: the ring moved to that id meanwhile, which ends the old incarnation and begins another.
func refusedForLast(history []porcupine.Operation, op porcupine.Operation) bool {
	in, out := op.Input.(input), op.Output.(output)
	return in.what == "place" && out.result == 0 && slices.ContainsFunc(history, func(moves porcupine.Operation) bool {
		to := moves.Output.(output).result
		if is(moves, "close") {
			to = (moves.Input.(input).argument + 1) % ringSize
		}
		return is(moves, "advance", "close") && to == in.argument && moves.Call < op.Return && moves.Return > op.Call
	})
}

// partition gives each machine the calls that act on it.
func partition(history []porcupine.Operation) [][]porcupine.Operation {
	var parts [][]porcupine.Operation
	history = append(slices.Clone(history), moreSteps(history)...)
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
	add("ring", func(op porcupine.Operation) bool {
		return is(op, "ring", "advance", "current", "close", "opens", "shut", "place", "any") && !refusedForLast(history, op)
	})
	add("room", func(op porcupine.Operation) bool { return is(op, "enter", "exit", "rent", "reset", "renew", "force") })
	add("budget", func(op porcupine.Operation) bool { return is(op, "charge", "credit") })
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

// tell prints calls in the order in which they began.
func tell(part []porcupine.Operation) {
	part = slices.Clone(part)
	slices.SortFunc(part, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	for _, op := range part {
		in, out := op.Input.(input), op.Output.(output)
		fmt.Printf("  thread %d, %d to %d: %s %d %d: %d %d\n", op.ClientId, op.Call, op.Return, in.what, in.phase, in.argument, out.result, out.handle)
	}
}

// overlapping returns how many calls began while an earlier one had not returned.
func overlapping(history []porcupine.Operation) (count int) {
	history = slices.Clone(history)
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	latest := int64(-1)
	for _, op := range history {
		if op.Call < latest {
			count++
		}
		latest = max(latest, op.Return)
	}
	return count
}

func main() {
	patience := flag.Duration("patience", time.Minute, "how long a history may take; one that takes longer is a failure")
	tokens := flag.Int("tokens", 2, "scopes that are detached at the start")
	show := flag.Bool("calls", false, "print the calls of a machine that no order explains")
	overlap := flag.Int("overlap", 0, "percent of all calls that must overlap others; fewer are a failure")
	flag.Parse()
	if flag.NArg() != 0 {
		fmt.Fprintln(os.Stderr, "checker: takes no argument; histories come on standard input")
		os.Exit(2)
	}

	lines := bufio.NewScanner(os.Stdin)
	checked, calls, refused, overlapped := 0, 0, 0, 0
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
		overlapped += overlapping(history)
		wrong := contradiction(history)
		search := slices.DeleteFunc(slices.Clone(history), func(op porcupine.Operation) bool { return is(op, "count", "give") })
		for _, part := range partition(search) {
			switch porcupine.CheckOperationsTimeout(m, part, *patience) {
			case porcupine.Illegal:
				wrong = fmt.Sprintf("no order of the calls explains the results of a %s", part[0].Input.(input).part)
				if *show {
					tell(part)
				}
			case porcupine.Unknown:
				wrong = "not decided in time"
			}
		}
		if wrong != "" {
			refused++
			fmt.Printf("history %d: %s\n", seed, wrong)
		}
	}
	share := 100 * overlapped / max(calls, 1)
	fmt.Printf("%d histories, %d calls: %d refused, %d percent of the calls overlapped others\n", checked, calls, refused, share)
	if refused > 0 || checked == 0 || share < *overlap {
		os.Exit(1)
	}
}
