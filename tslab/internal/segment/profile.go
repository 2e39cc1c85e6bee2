package segment

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"temporal-slab/tslab/internal/snapshot"
)

// The heap profile lies in a second file beside the segment, see docs/segment.md.

const (
	profileHead  = 96
	profileLive  = 24
	profileStack = 56
	profileMaker = 40
	profileGone  = 24
	maxDepth     = 256
	maxProfile   = 8 << 20 // the library's tables have some 2 MiB
	maxValue     = 1 << 53 // of objects and bytes: whole numbers up to there are exact
)

// Live is a sampled object that is in use.
type Live struct {
	Bytes, Era   uint64
	Stack, Class int
	Escaped      bool // its phase was drained; told with the option escape_stacks
}

// Stack is all that was ever sampled with one label and by one maker by one stack of return addresses, the innermost first.
type Stack struct {
	Label          string
	Maker          string // label of the scopes that made it outside of every phase; "": it was not made so
	Objects, Bytes float64
	Frames         []uint64

	EscapedObjects, EscapedBytes float64 // of these: what outlived the end of its phase; with the option escape_stacks
}

// Mapping is a part of a file that the process runs code of.
type Mapping struct {
	Low, High, Offset, Inode uint64
	Path                     string // as /proc/PID/maps has it, " (deleted)" included
}

// Profile is the heap profile of one allocator as it was published, and what the process has mapped.
type Profile struct {
	Pid, Allocator                        int
	Named                                 bool   // one among several that the process has or had
	Period, Samples, NoStack, NotFollowed uint64 // a period of 1: each object, of domains alone
	Escapes                               bool   // the option escape_stacks
	Stacks                                []Stack
	Live                                  []Live
	Mappings                              []Mapping
	Age                                   time.Duration
	State                                 snapshot.State
}

// ReadProfile fetches the profile of an allocator, or with a negative number those of all that live and have one.
func ReadProfile(pid, which int) ([]*Profile, error) {
	g, err := attach(pid, profiles)
	if err != nil && !errors.As(err, new(*foreign)) {
		return nil, err
	}
	if g == nil {
		s, err := Attach(pid) // says what is the matter when there are no statistics either
		if err != nil {
			return nil, errors.New(strings.Replace(err.Error(), "TSLAB_OPTIONS=segment=1 (or SlabOptions.segment)",
				"TSLAB_OPTIONS=segment=1,profile_bytes=512k (or SlabOptions)", 1))
		}
		s.Close()
		return nil, fmt.Errorf("pid %d: shows statistics and no heap profile; start it with TSLAB_OPTIONS=segment=1,profile_bytes=512k%s", pid, ignored(pid))
	}
	defer g.Close()
	slots := []int{which}
	if which < 0 {
		slots, err = g.shown()
	}
	var list []*Profile
	for _, n := range slots {
		p, oneErr := g.profile(n)
		if oneErr != nil {
			err = oneErr // it may have been destroyed just now: the others are still there
			continue
		}
		p.Pid, p.Allocator, p.Named = pid, n, len(slots) > 1 || g.several()
		list = append(list, p)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("pid %d: %w", pid, err)
	}
	mappings, err := Mappings(pid)
	now, gone := identify(pid)
	if err == nil && (gone != nil || now.start != g.who.start) {
		err = ErrEnded // so the mappings may be another's
	}
	if err != nil {
		return nil, fmt.Errorf("pid %d: %w", pid, err)
	}
	for _, p := range list {
		p.Mappings, p.State = mappings, now.state()
	}
	return list, nil
}

func (g *Segment) profile(which int) (*Profile, error) {
	if uint64(which) >= g.head.slots.count {
		return nil, bad("no allocator %d: there are %d places", which, g.head.slots.count)
	}
	for try := range readTries {
		if try != 0 {
			time.Sleep(readPause)
		}
		b, err := g.copyProfile(which)
		if err != nil {
			return nil, err
		}
		if b != nil {
			return decodeProfile(b)
		}
	}
	return nil, bad("the profile is inconsistent: it changed during each of %d readings", readTries)
}

// copyProfile is one try: nil without error when a publication came between.
func (g *Segment) copyProfile(which int) ([]byte, error) {
	s, err := g.slot(which)
	switch {
	case err != nil:
		return nil, err
	case s.state == 0 || s.sequence < 2:
		return nil, bad("allocator %d shows no heap profile", which)
	case s.bufferBytes < profileHead:
		return nil, bad("a buffer of the profile is too short")
	}
	n := s.sequence / 2
	head, err := g.pread(s.buffer[n&1], profileHead)
	if err != nil {
		return nil, err
	}
	size := le.Uint64(head[24:])
	fits := size >= profileHead && size <= s.bufferBytes && size <= maxProfile && size%8 == 0
	var b []byte
	if fits {
		if b, err = g.pread(s.buffer[n&1], size); err != nil {
			return nil, err
		}
	}
	after, err := g.slot(which)
	if err != nil {
		return nil, err
	}
	if after.sequence < s.sequence || after.sequence > 2*n+2 || le.Uint64(head) != n || le.Uint64(head[8:]) != s.serial {
		return nil, nil
	}
	if !fits {
		return nil, bad("the profile says it has %d bytes, which is damaged", size)
	}
	return b, nil
}

func decodeProfile(b []byte) (*Profile, error) {
	p := &Profile{Period: le.Uint64(b[32:]), Samples: le.Uint64(b[40:]), NoStack: le.Uint64(b[48:]), NotFollowed: le.Uint64(b[56:])}
	stacks, live, makers := le.Uint64(b[64:]), le.Uint64(b[72:]), le.Uint64(b[80:])
	escapes := uint64(le.Uint32(b[88:]))
	p.Escapes = le.Uint32(b[92:]) != 0
	if now, begun := monotonic(), le.Uint64(b[16:]); now >= begun {
		p.Age = snapshot.Nanoseconds(now - begun)
	}
	b = b[profileHead:]
	if p.Period == 0 || p.Period > maxValue || live > uint64(len(b))/profileLive || stacks > (uint64(len(b))-live*profileLive)/profileStack {
		return nil, bad("the profile is damaged: it has more rows than room")
	}
	for ; live != 0; live-- {
		l := Live{Bytes: le.Uint64(b), Era: le.Uint64(b[8:]), Stack: int(le.Uint32(b[16:])), Class: int(le.Uint16(b[20:])), Escaped: le.Uint16(b[22:]) != 0}
		if uint64(l.Stack) >= stacks || l.Bytes == 0 || l.Bytes > maxValue || l.Era > math.MaxInt64 {
			return nil, bad("the profile is damaged: an object in use makes no sense")
		}
		p.Live = append(p.Live, l)
		b = b[profileLive:]
	}
	for ; stacks != 0; stacks-- {
		s, rest, err := decodeStack(b)
		if err != nil {
			return nil, err
		}
		p.Stacks = append(p.Stacks, s)
		b = rest
	}
	b, err := p.decodeMakers(b, makers)
	if err == nil {
		err = p.decodeEscapes(b, escapes)
	}
	return p, err
}

func (p *Profile) decodeEscapes(b []byte, escapes uint64) error {
	if escapes > uint64(len(b))/profileGone {
		return bad("the profile is damaged: its escapes are cut off")
	}
	for ; escapes != 0; escapes-- {
		stack, objects, bytes := le.Uint64(b), math.Float64frombits(le.Uint64(b[8:])), math.Float64frombits(le.Uint64(b[16:]))
		if stack >= uint64(len(p.Stacks)) || !(objects >= 0 && objects <= maxValue && bytes >= 0 && bytes <= maxValue) {
			return bad("the profile is damaged: an escape makes no sense")
		}
		p.Stacks[stack].EscapedObjects, p.Stacks[stack].EscapedBytes = objects, bytes
		b = b[profileGone:]
	}
	return nil
}

func (p *Profile) decodeMakers(b []byte, makers uint64) ([]byte, error) {
	if makers > uint64(len(b))/profileMaker {
		return nil, bad("the profile is damaged: its makers are cut off")
	}
	for ; makers != 0; makers-- {
		stack := le.Uint64(b)
		label, err := textOf(b[8:profileMaker])
		if err != nil || stack >= uint64(len(p.Stacks)) {
			return nil, bad("the profile is damaged: a maker makes no sense")
		}
		p.Stacks[stack].Maker = label
		b = b[profileMaker:]
	}
	return b, nil
}

func decodeStack(b []byte) (s Stack, rest []byte, err error) {
	if len(b) < profileStack {
		return s, nil, bad("the profile is damaged: its stacks are cut off")
	}
	if s.Label, err = textOf(b[:32]); err != nil {
		return s, nil, bad("the profile is damaged: a label does not end")
	}
	s.Objects, s.Bytes = math.Float64frombits(le.Uint64(b[32:])), math.Float64frombits(le.Uint64(b[40:]))
	if !(s.Objects >= 0 && s.Objects <= maxValue && s.Bytes >= 0 && s.Bytes <= maxValue) {
		return s, nil, bad("the profile is damaged: a sum is no number")
	}
	depth := le.Uint64(b[48:])
	b = b[profileStack:]
	if depth == 0 || depth > maxDepth || depth > uint64(len(b))/8 {
		return s, nil, bad("the profile is damaged: a stack is deeper than there is room")
	}
	for k := range depth {
		s.Frames = append(s.Frames, le.Uint64(b[8*k:]))
	}
	return s, b[8*depth:], nil
}

// Mappings are those of a process, of code from files.
func Mappings(pid int) ([]Mapping, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, fmt.Errorf("its mappings cannot be read: %w", unwrapPath(err))
	}
	var list []Mapping
	for line := range strings.Lines(string(text)) {
		// low-high perms offset device inode path
		f := strings.SplitN(strings.TrimRight(line, "\n"), " ", 6)
		if len(f) < 6 || len(f[1]) < 3 || f[1][2] != 'x' || !strings.HasPrefix(strings.TrimLeft(f[5], " "), "/") {
			continue
		}
		low, high, _ := strings.Cut(f[0], "-")
		m := Mapping{Path: strings.TrimLeft(f[5], " ")}
		for _, n := range []struct {
			to   *uint64
			text string
			base int
		}{{&m.Low, low, 16}, {&m.High, high, 16}, {&m.Offset, f[2], 16}, {&m.Inode, f[4], 10}} {
			if *n.to, err = strconv.ParseUint(n.text, n.base, 64); err != nil {
				return nil, fmt.Errorf("its mappings are not as expected: %q", line)
			}
		}
		list = append(list, m)
	}
	return list, nil
}

func unwrapPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
