package segment

import (
	"bytes"
	"math"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/testdata"
)

// A segment as docs/segment.md describes it, made of the document of package testdata, for tests to damage.

const testRows = 128

type builder struct {
	b        []byte
	scopesAt uint64
	metricAt map[string]uint64 // "SCOPE.name" -> its descriptor
	slotsAt  uint64
	scope    map[string]int
	offset   []uint64 // of each scope's rows
	rowBytes []uint64
	buffer   [2]uint64
	scopes   int
}

var scopeNames = []string{"DOCUMENT", "GLOBAL", "REGISTRY", "CLASS", "EPOCH", "SAMPLING", "REFUSAL", "PHASE", "LABEL", "CLOSE"}

func (w *builder) u64(at, v uint64)        { le.PutUint64(w.b[at:], v) }
func (w *builder) u32(at uint64, v uint32) { le.PutUint32(w.b[at:], v) }

func width(m *metrics.Metric) uint64 {
	switch {
	case m.IsArray():
		return uint64(8 * m.Entries())
	case m.Type == metrics.String:
		return 32
	}
	return 8
}

func build(pid, start uint64, boot string) *builder {
	all := metrics.All()
	w := &builder{metricAt: map[string]uint64{}, scope: map[string]int{}, scopes: len(scopeNames)}
	w.scopesAt = headerBytes
	metricsAt := w.scopesAt + uint64(w.scopes)*scopeBytes
	w.slotsAt = metricsAt + uint64(len(all))*metricBytes
	at := uint64(bufferHead + rowsBytes*w.scopes)
	for k := range scopeNames {
		row := uint64(0)
		for _, m := range metrics.Of(metrics.Section(k)).Metrics {
			row += width(m)
		}
		w.rowBytes, w.offset = append(w.rowBytes, row), append(w.offset, at)
		at += testRows * row
	}
	bufferBytes := at
	w.buffer = [2]uint64{w.slotsAt + 2*slotBytes, w.slotsAt + 2*slotBytes + bufferBytes}
	w.b = make([]byte, w.buffer[1]+bufferBytes)

	copy(w.b, statistics.magic)
	w.u32(8, endianMark)
	w.u32(12, major)
	w.u32(16, headerBytes)
	w.u64(24, uint64(len(w.b)))
	w.u64(32, pid)
	w.u64(40, start)
	copy(w.b[48:88], boot)
	for i, t := range [][3]uint64{{w.scopesAt, uint64(w.scopes), scopeBytes}, {metricsAt, uint64(len(all)), metricBytes}, {w.slotsAt, 2, slotBytes}} {
		w.u64(uint64(120+16*i), t[0])
		w.u32(uint64(128+16*i), uint32(t[1]))
		w.u32(uint64(132+16*i), uint32(t[2]))
	}
	for k, name := range scopeNames {
		d := w.scopesAt + uint64(k)*scopeBytes
		copy(w.b[d:], name)
		w.u32(d+112, uint32(metrics.Of(metrics.Section(k)).Form))
		w.u32(d+116, uint32(w.rowBytes[k]))
		w.u32(d+120, testRows)
		w.u64(d+128, w.offset[k])
		w.scope[name] = k
	}
	in, told := make([]uint64, w.scopes), testdata.Snapshot()
	for i, m := range all {
		d := metricsAt + uint64(i)*metricBytes
		copy(w.b[d:], "unknown") // what an older document does not tell
		if rows := told.Rows(m.Section); len(rows) == 0 || rows[0].Has(m) {
			copy(w.b[d:], m.Key+"\x00")
		}
		w.u32(d+320, uint32(m.Section))
		w.u32(d+324, uint32(m.Type))
		w.u32(d+336, uint32(in[m.Section]))
		w.u32(d+340, uint32(width(m)))
		in[m.Section] += width(m)
		w.metricAt[scopeNames[m.Section]+"."+m.Key] = d
	}
	w.u64(w.slotsAt, 1)
	w.u64(w.slotsAt+8, 77)
	w.u64(w.slotsAt+24, monotonic())
	w.u64(w.slotsAt+56, bufferBytes)
	w.u64(w.slotsAt+64, w.buffer[0])
	w.u64(w.slotsAt+72, w.buffer[1])
	w.publish(1, published())
	return w
}

// published is the document as a process publishes it: with phases that have no row.
func published() *snapshot.Snapshot {
	s := testdata.Snapshot()
	set := func(key string, v uint64) { s.Document().SetUint(metrics.Of(metrics.Document).Find(key), v) }
	set("phases_left_out", 5)
	set("publication", 1)
	set("phases_ns", 1)
	return s
}

// publish writes publication n whole.
func (w *builder) publish(n uint64, s *snapshot.Snapshot) {
	at := w.buffer[n&1]
	w.u64(at, n)
	w.u64(at+8, 77)
	w.u64(at+16, monotonic())
	for k := range scopeNames {
		rows := s.Rows(metrics.Section(k))
		rows = rows[:min(len(rows), testRows)]
		w.u64(at+bufferHead+rowsBytes*uint64(k), uint64(len(rows)))
		for i, r := range rows {
			place := at + w.offset[k] + uint64(i)*w.rowBytes[k]
			for _, m := range metrics.Of(metrics.Section(k)).Metrics {
				w.value(place, r, m)
				place += width(m)
			}
		}
	}
	w.u64(w.slotsAt+16, 2*n)
}

func (w *builder) value(at uint64, r *snapshot.Row, m *metrics.Metric) {
	switch {
	case m.IsArray():
		for i, v := range r.Array(m) {
			w.u64(at+uint64(8*i), v)
		}
	case m.Type == metrics.String:
		copy(w.b[at:at+31], r.Text(m))
	case m.Type == metrics.F64:
		w.u64(at, math.Float64bits(r.Float(m)))
	default:
		w.u64(at, r.Uint(m))
	}
}

// file puts the segment into memory that this process keeps open, as a publisher would.
func (w *builder) file(t testing.TB) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("temporal-slab", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "segment")
	t.Cleanup(func() { f.Close() })
	if err := f.Chmod(0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(w.b, 0); err != nil {
		t.Fatal(err)
	}
	return f
}

func mine(t *testing.T) *builder {
	t.Helper()
	who, err := identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return build(who.innerPid, who.start, who.boot)
}

func text(s *snapshot.Snapshot) string {
	var b bytes.Buffer
	s.WriteJSON(&b)
	return b.String()
}
