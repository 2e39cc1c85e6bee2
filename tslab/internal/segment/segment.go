package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
)

// Segment is one that was found and checked.
type Segment struct {
	f      *os.File
	who    identity
	head   header
	scopes []scope
	fields []*field
}

const (
	readTries = 8
	readPause = 20 * time.Millisecond
)

// foreign is the segment of another process: who reads one, or was forked, keeps it open and is not damaged.
type foreign struct{ pid uint64 }

func (f *foreign) Error() string { return fmt.Sprintf("the segment belongs to process %d", f.pid) }

// ErrEnded: the process is gone.
var ErrEnded = errors.New("the process has ended")

// Allocator is one slot of the directory.
type Allocator struct {
	Slot      int
	Live      bool
	Published bool
	Changed   bool          // since then
	Age       time.Duration // of the latest publication
}

// Made is when the segment was made, by the monotonic clock: a process may make several one after the other.
func (g *Segment) Made() uint64 { return g.head.created }

// Close lets go of the segment.
func (g *Segment) Close() error { return g.f.Close() }

// pread reads a place of the segment; a short read is an error.
func (g *Segment) pread(offset, n uint64) ([]byte, error) {
	if offset > math.MaxInt64-n {
		return nil, bad("a place beyond the segment")
	}
	b := make([]byte, n)
	got, err := g.f.ReadAt(b, int64(offset))
	if uint64(got) == n {
		return b, nil
	}
	if errors.Is(err, io.EOF) {
		return nil, bad("the segment is cut off: %d bytes at %d, %d wanted", got, offset, n)
	}
	return nil, err
}

// load checks the whole description of an open file: of the process `who`.
func load(f *os.File, who identity, k *kind) (*Segment, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	g := &Segment{f: f, who: who}
	if info.Size() < headerBytes {
		return nil, bad("the segment is cut off: %d bytes are no header", info.Size())
	}
	b, err := g.pread(0, headerBytes)
	if err != nil {
		return nil, err
	}
	if g.head, err = parseHeader(b, k.magic); err != nil {
		return nil, err
	}
	switch h := &g.head; {
	case h.total != uint64(info.Size()):
		return nil, bad("the segment says %d bytes and has %d", h.total, info.Size())
	case h.pid != who.innerPid:
		return nil, &foreign{h.pid}
	case h.start != who.start:
		return nil, bad("the segment belongs to an earlier process with the same id")
	case h.boot != "" && who.boot != "" && h.boot != who.boot:
		return nil, bad("the segment was made before the machine was started")
	}
	if err := g.head.slots.check("slots", slotBytes, maxSlots, g.head.total); err != nil || !k.rows {
		return g, err
	}
	return g, g.tables()
}

func (g *Segment) tables() error {
	h := &g.head
	if err := h.scopes.check("scopes", scopeBytes, maxScopes, h.total); err != nil {
		return err
	}
	if err := h.metrics.check("metrics", metricBytes, maxMetrics, h.total); err != nil {
		return err
	}
	err := g.each(h.scopes, func(b []byte) error {
		s, err := parseScope(b, h.scopes.count)
		g.scopes = append(g.scopes, s)
		return err
	})
	if err != nil {
		return err
	}
	seen := map[*metrics.Metric]bool{}
	return g.each(h.metrics, func(b []byte) error {
		f, err := parseMetric(b, g.scopes)
		if f != nil && !seen[f.metric] {
			seen[f.metric] = true
			g.fields = append(g.fields, f)
		}
		return err
	})
}

func (g *Segment) each(t table, fn func([]byte) error) error {
	b, err := g.pread(t.offset, t.count*t.stride)
	for i := uint64(0); err == nil && i < t.count; i++ {
		err = fn(b[i*t.stride : (i+1)*t.stride])
	}
	return err
}

func (g *Segment) slot(i int) (slot, error) {
	b, err := g.pread(g.head.slots.offset+uint64(i)*g.head.slots.stride, slotBytes)
	if err != nil {
		return slot{}, err
	}
	return parseSlot(b, g.head.total)
}

// Allocators lists the slots in use.
func (g *Segment) Allocators() ([]Allocator, error) {
	var list []Allocator
	now := monotonic()
	for i := range int(g.head.slots.count) {
		s, err := g.slot(i)
		if err != nil {
			return nil, err
		}
		if s.state == 0 {
			continue
		}
		a := Allocator{Slot: i, Live: s.state == slotLive, Published: s.sequence >= 2, Changed: s.changed}
		if a.Published && now > s.published {
			a.Age = snapshot.Nanoseconds(now - s.published)
		}
		list = append(list, a)
	}
	return list, nil
}

// shown are the slots to read when none was named: those that live and have published, else one that has ended.
func (g *Segment) shown() ([]int, error) {
	list, err := g.Allocators()
	if err != nil {
		return nil, err
	}
	var live, ended []int
	for _, a := range list {
		switch {
		case a.Published && a.Live:
			live = append(live, a.Slot)
		case a.Published:
			ended = append(ended, a.Slot)
		}
	}
	switch {
	case len(live) != 0:
		return live, nil
	case len(ended) != 0:
		return ended[:1], nil
	case len(list) != 0:
		return nil, errors.New("its allocator has not published anything yet; try again")
	}
	return nil, errors.New("it has no allocator now")
}

// Read copies the latest publication of a slot, or with a negative number those of all allocators that live.
func (g *Segment) Read(which int) (*snapshot.Snapshot, error) {
	now, err := identify(g.who.pid)
	if err != nil || now.start != g.who.start {
		return nil, ErrEnded
	}
	if which >= 0 {
		return g.one(which, &now)
	}
	slots, err := g.shown()
	if err != nil {
		return nil, err
	}
	var parts []*snapshot.Snapshot
	for _, n := range slots {
		s, oneErr := g.one(n, &now)
		if oneErr != nil {
			err = oneErr // it may have been destroyed just now: the others are still there
			continue
		}
		s.Named = s.Named || len(slots) > 1
		s.Whole = true
		parts = append(parts, s)
	}
	if len(parts) == 0 {
		return nil, err
	}
	return snapshot.Together(parts), nil
}

func (g *Segment) one(which int, now *identity) (*snapshot.Snapshot, error) {
	if uint64(which) >= g.head.slots.count {
		return nil, bad("no allocator %d: there are %d places", which, g.head.slots.count)
	}
	for try := range readTries {
		if try != 0 {
			time.Sleep(readPause)
		}
		s, b, err := g.copy(which)
		if err != nil {
			return nil, err
		}
		if b == nil {
			continue
		}
		out, err := g.decode(s, b)
		if err != nil {
			return nil, err
		}
		state := now.state()
		if s.state != slotLive {
			state = snapshot.Ended
		}
		judge(out, le.Uint64(b[16:]), state, which, s.changed && s.state == slotLive)
		out.Process = g.who.pid
		out.Named = g.several()
		return out, nil
	}
	return nil, bad("the numbers are inconsistent: they changed during each of %d readings", readTries)
}

// several says whether the process has, or had, more than one allocator to show.
func (g *Segment) several() bool {
	list, err := g.Allocators()
	return err == nil && len(list) > 1
}

// copy is one try: nil without error when a publication came between.
func (g *Segment) copy(which int) (slot, []byte, error) {
	s, err := g.slot(which)
	switch {
	case err != nil:
		return s, nil, err
	case s.state == 0:
		return s, nil, bad("there is no allocator %d", which)
	case s.sequence < 2:
		return s, nil, bad("allocator %d has not published anything yet; try again", which)
	case s.bufferBytes < bufferHead+rowsBytes*uint64(len(g.scopes)):
		return s, nil, bad("a buffer is too short")
	}
	n := s.sequence / 2
	b, err := g.pread(s.buffer[n&1], s.bufferBytes)
	if err != nil {
		return s, nil, err
	}
	after, err := g.slot(which)
	if err != nil {
		return s, nil, err
	}
	if after.sequence < s.sequence || after.sequence > 2*n+2 || le.Uint64(b) != n || le.Uint64(b[8:]) != s.serial {
		return s, nil, nil
	}
	return s, b, nil
}

// decode makes a snapshot of a buffer.
func (g *Segment) decode(s slot, b []byte) (*snapshot.Snapshot, error) {
	out := snapshot.New()
	rows, total := make([][]*snapshot.Row, len(g.scopes)), uint64(0)
	for i := range g.scopes {
		sc := &g.scopes[i]
		at := b[bufferHead+rowsBytes*i:]
		count, leftOut := le.Uint64(at), le.Uint64(at[8:])
		if count > sc.rows || count > maxRows || sc.rows > maxBuffer || sc.rowBytes > maxBuffer || !within(sc.offset, count*sc.rowBytes, uint64(len(b))) {
			return nil, bad("%s has more rows than room", sc.name)
		}
		if !sc.known {
			continue
		}
		if total += count; total > maxRows {
			return nil, bad("the segment has more rows than any should")
		}
		out.LeaveOut(sc.section, leftOut)
		if metrics.Of(sc.section).Form != metrics.Array {
			rows[i] = []*snapshot.Row{out.One(sc.section)}
			if count == 0 {
				rows[i] = nil
			}
			continue
		}
		for range count {
			r := snapshot.NewRow(sc.section)
			out.Append(r)
			rows[i] = append(rows[i], r)
		}
	}
	for _, f := range g.fields {
		sc := &g.scopes[f.scope]
		for k, r := range rows[f.scope] {
			at := sc.offset + uint64(k)*sc.rowBytes + f.offset
			take(r, f.metric, b[at:at+f.bytes])
		}
	}
	if v := out.Global().U("schema_version"); v != metrics.Version {
		return nil, bad("schema_version %d: this tslab reads version %d", v, metrics.Version)
	}
	return out, nil
}

// judge says of a publication what only its reader can know: whose it is, how old, whether it is the latest, and what the
// process does.
func judge(out *snapshot.Snapshot, begun uint64, state snapshot.State, slot int, changed bool) {
	d, now := out.Document(), monotonic()
	set := func(key string, v uint64) { d.SetUint(metrics.Of(metrics.Document).Find(key), v) }
	if walk := d.U("phases_ns"); walk != 0 && walk <= now {
		set("phases_age_ns", now-walk)
	}
	if begun <= now {
		set("figures_age_ns", now-begun)
	}
	set("allocator", uint64(slot))
	set("changed_since", 0)
	if changed {
		set("changed_since", 1)
	}
	d.SetText(metrics.Of(metrics.Document).Find("process_state"), state.String())
	out.Just()
	out.Aged = begun <= now
}

// take puts a value into its row unless no value of its type looks like that.
func take(r *snapshot.Row, m *metrics.Metric, b []byte) {
	switch m.Type {
	case metrics.String:
		if n := bytes.IndexByte(b, 0); n >= 0 {
			b = b[:n]
		}
		r.SetText(m, string(bytes.ToValidUTF8(b, []byte("\uFFFD"))))
	case metrics.ByLabel, metrics.Doubling, metrics.Latency, metrics.List:
		a := make([]uint64, len(b)/8)
		for i := range a {
			a[i] = le.Uint64(b[8*i:])
		}
		r.SetArray(m, a)
	case metrics.F64:
		v := math.Float64frombits(le.Uint64(b))
		if !math.IsNaN(v) && !math.IsInf(v, 0) && (v >= 0 || m.Unit == metrics.MiB) {
			r.SetFloat(m, v)
		}
	default:
		v := le.Uint64(b)
		most := uint64(math.MaxUint64)
		switch m.Type {
		case metrics.U32:
			most = math.MaxUint32
		case metrics.Flag, metrics.State:
			most = 1
		}
		if v <= most {
			r.SetUint(m, v)
		}
	}
}

func monotonic() uint64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return uint64(t.Nano())
}
