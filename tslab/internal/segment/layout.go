// Package segment reads the statistics segment: shared memory in which a process shows its statistics. docs/segment.md
// describes it, include/slab_segment.h has the layout.
//
// Nothing the segment says is trusted. Every place is checked against the length of the file before it is read, every
// count has a limit, and reading is done with pread, so a file that shrinks is a short read and no fault. What the
// descriptors call by a name and type of our table is taken into a snapshot, whatever else is there is left alone.
package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"temporal-slab/tslab/internal/metrics"
)

const (
	endianMark  = 0x01020304
	major       = 1
	headerBytes = 256
	scopeBytes  = 136
	metricBytes = 352
	slotBytes   = 128
	bufferHead  = 32
	rowsBytes   = 16 // count and left_out of a scope
)

// Limits: generous against what the library makes (9 scopes, 300 metrics, 16 slots, buffers below 1 MiB).
const (
	maxScopes  = 64
	maxMetrics = 4096
	maxSlots   = 1024
	maxBuffer  = 64 << 20
	maxRows    = 1 << 16 // of all scopes: the library's hold some 600
)

var le = binary.LittleEndian

// Bad is what is wrong with a segment.
type Bad struct{ What string }

func (b *Bad) Error() string { return b.What }

func bad(format string, args ...any) error { return &Bad{fmt.Sprintf(format, args...)} }

type table struct {
	offset        uint64
	count, stride uint64
}

type header struct {
	total, pid, start      uint64
	created                uint64
	boot                   string
	scopes, metrics, slots table
}

type scope struct {
	name           string
	rowBytes, rows uint64 // capacity
	offset         uint64
	section        metrics.Section
	known          bool
}

// field is a metric of the segment that our table knows, too.
type field struct {
	scope         int
	metric        *metrics.Metric
	offset, bytes uint64
}

const slotLive = 1 // else 0: nothing there; or an allocator that was destroyed

type slot struct {
	state, serial, sequence, published uint64
	changed                            bool // since the latest publication
	bufferBytes                        uint64
	buffer                             [2]uint64
}

func parseHeader(b []byte, magic string) (header, error) {
	var h header
	switch {
	case bytes.Equal(b[:8], make([]byte, 8)):
		return h, bad("the segment is just being made; try again")
	case string(b[:8]) != magic:
		return h, bad("no segment of temporal-slab: the magic is not there")
	case le.Uint32(b[8:]) != endianMark:
		return h, bad("the segment is of a machine with another byte order, or damaged")
	case le.Uint16(b[12:]) != major:
		return h, bad("the segment has layout version %d, this tslab reads version %d", le.Uint16(b[12:]), major)
	case le.Uint32(b[16:]) < headerBytes:
		return h, bad("the header of the segment is too short")
	}
	h.total, h.pid, h.start = le.Uint64(b[24:]), le.Uint64(b[32:]), le.Uint64(b[40:])
	h.created = le.Uint64(b[88:])
	var err error
	if h.boot, err = textOf(b[48:88]); err != nil {
		return h, err
	}
	for i, t := range []*table{&h.scopes, &h.metrics, &h.slots} {
		at := b[120+16*i:]
		*t = table{le.Uint64(at), uint64(le.Uint32(at[8:])), uint64(le.Uint32(at[12:]))}
	}
	return h, nil
}

// textOf is the text of a field that has to end within it.
func textOf(b []byte) (string, error) {
	n := bytes.IndexByte(b, 0)
	if n < 0 {
		return "", bad("a text of the segment does not end")
	}
	return string(bytes.ToValidUTF8(b[:n], []byte(string(utf8.RuneError)))), nil
}

// within says whether [offset, offset + bytes) lies in a whole, without overflow.
func within(offset, bytes, whole uint64) bool { return offset <= whole && bytes <= whole-offset }

func (t table) check(name string, rowBytes, most, whole uint64) error {
	if t.stride < rowBytes || t.count > most || t.offset%8 != 0 || t.stride > 1<<16 || !within(t.offset, t.count*t.stride, whole) {
		return bad("the table of %s lies outside of the segment or is damaged", name)
	}
	return nil
}

func parseScope(b []byte, scopes uint64) (scope, error) {
	var s scope
	name, err := textOf(b[:32])
	if err != nil {
		return s, err
	}
	s = scope{name: name, rowBytes: uint64(le.Uint32(b[116:])), rows: uint64(le.Uint32(b[120:])), offset: le.Uint64(b[128:])}
	if s.offset < bufferHead+rowsBytes*scopes || s.offset%8 != 0 || s.rowBytes%8 != 0 {
		return s, bad("the rows of %s lie where they cannot", name)
	}
	s.section, s.known = metrics.SectionNamed(name)
	return s, nil
}

// parseMetric is nil when our table has no such metric, or has it with another type.
func parseMetric(b []byte, scopes []scope) (*field, error) {
	name, err := textOf(b[:64])
	if err != nil {
		return nil, err
	}
	at, kind := uint64(le.Uint32(b[320:])), le.Uint32(b[324:])
	f := &field{scope: int(at), offset: uint64(le.Uint32(b[336:])), bytes: uint64(le.Uint32(b[340:]))}
	if at >= uint64(len(scopes)) {
		return nil, bad("the metric %.64q belongs to no scope", name)
	}
	s := &scopes[at]
	if f.offset%8 != 0 || !within(f.offset, f.bytes, s.rowBytes) {
		return nil, bad("the metric %.64q lies outside of its row", name)
	}
	if !s.known {
		return nil, nil
	}
	f.metric = metrics.Of(s.section).Find(name)
	if f.metric == nil || !f.fits(kind) {
		return nil, nil
	}
	return f, nil
}

// fits says whether the value is kept as our table expects it. Widths of whole numbers do not matter: all have 8 bytes.
func (f *field) fits(kind uint32) bool {
	t := f.metric.Type
	switch {
	case t == metrics.U32 || t == metrics.U64:
		return kind <= uint32(metrics.U64) && f.bytes == 8
	case kind != uint32(t):
		return false
	case t == metrics.String:
		return f.bytes != 0 && f.bytes <= 4096
	case f.metric.IsArray():
		return f.bytes == uint64(8*f.metric.Entries())
	}
	return f.bytes == 8
}

func parseSlot(b []byte, total uint64) (slot, error) {
	s := slot{state: le.Uint64(b), serial: le.Uint64(b[8:]), sequence: le.Uint64(b[16:]), published: le.Uint64(b[24:]),
		changed: le.Uint64(b[80:]) != 0, bufferBytes: le.Uint64(b[56:]), buffer: [2]uint64{le.Uint64(b[64:]), le.Uint64(b[72:])}}
	if s.state == 0 {
		return s, nil
	}
	for _, at := range s.buffer {
		if s.bufferBytes > maxBuffer || at%8 != 0 || !within(at, s.bufferBytes, total) {
			return s, bad("a buffer lies outside of the segment")
		}
	}
	return s, nil
}
