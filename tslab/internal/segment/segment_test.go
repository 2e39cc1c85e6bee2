package segment

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/testdata"
)

// What was published is what is read.
func TestRead(t *testing.T) {
	begin := time.Now()
	w := mine(t)
	w.u64(w.buffer[1]+bufferHead+rowsBytes*uint64(w.scope["PHASE"])+8, 5)
	w.file(t)
	g, err := Attach(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	got, err := g.Read(-1)
	if err != nil {
		t.Fatal(err)
	}
	want, d := published(), got.Document()
	if d.U("figures_age_ns") == 0 || d.U("phases_age_ns") <= d.U("figures_age_ns") || d.S("process_state") != "running" || got.State != snapshot.Running {
		t.Errorf("figures %d ns old, rows %d, %q", d.U("figures_age_ns"), d.U("phases_age_ns"), d.S("process_state"))
	}
	for _, key := range []string{"figures_age_ns", "phases_age_ns", "allocator", "changed_since"} { // what the reader adds
		m := metrics.Of(metrics.Document).Find(key)
		want.Document().SetUint(m, d.Uint(m))
	}
	if text(got) != text(want) {
		t.Error("the snapshot is not what was published")
	}
	if got.Left(metrics.Phase) != 5 || !got.Aged || got.Age > time.Since(begin) {
		t.Errorf("left out %d, age %v %v", got.Left(metrics.Phase), got.Aged, got.Age)
	}
	list, err := List()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, p := range list {
		found = found || p.Pid == os.Getpid() && len(p.Allocators) == 1 && p.Allocators[0].Live
		p.Segment.Close()
	}
	if !found {
		t.Error("ls does not find this process")
	}
}

// The latest complete publication is read, also while the next is being written for ever.
func TestOddSequence(t *testing.T) {
	w := mine(t)
	second := testdata.Snapshot()
	second.Global().SetUint(metrics.Of(metrics.Global).Find("live_objects"), 424242)
	w.publish(2, second)
	w.u64(w.slotsAt+16, 5) // the third has begun: it goes to the other buffer
	copy(w.b[w.buffer[1]:w.buffer[1]+4096], strings.Repeat("\xff", 4096))
	w.file(t)
	got := attachAndRead(t)
	if n := got.Global().U("live_objects"); n != 424242 {
		t.Errorf("live_objects %d", n)
	}
}

func attachAndRead(t *testing.T) *snapshot.Snapshot {
	t.Helper()
	g, err := Attach(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	s, err := g.Read(-1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Descriptors decide: rows may be longer, metrics may move, appear and vanish.
func TestDescriptors(t *testing.T) {
	w := mine(t)
	rename := func(name, to string) { copy(w.b[w.metricAt[name]:w.metricAt[name]+64], to+"\x00") }
	rename("GLOBAL.live_objects", "objects_that_live")
	w.u32(w.metricAt["GLOBAL.live_bytes"]+324, uint32(metrics.F64))                   // another type
	a, b := w.metricAt["GLOBAL.committed_bytes"], w.metricAt["GLOBAL.metadata_bytes"] // change places
	oa, ob := le.Uint32(w.b[a+336:]), le.Uint32(w.b[b+336:])
	w.u32(a+336, ob)
	w.u32(b+336, oa)
	copy(w.b[w.scopesAt+uint64(w.scope["REFUSAL"])*scopeBytes:], "REBUTTAL\x00")
	w.file(t)
	got, want := attachAndRead(t).Global(), testdata.Snapshot().Global()
	if got.Tells("live_objects") || got.Tells("live_bytes") {
		t.Error("a metric of another name or type was taken")
	}
	if got.U("committed_bytes") != want.U("metadata_bytes") || got.U("metadata_bytes") != want.U("committed_bytes") {
		t.Error("offsets are not those of the descriptors")
	}
}

// emptyRows claims rows that take no room, of lists of which nothing is told.
func (w *builder) emptyRows(phases, labels uint64) {
	w.u32(144, uint32((w.metricAt["PHASE.version"]-le.Uint64(w.b[136:]))/metricBytes))
	for name, rows := range map[string]uint64{"PHASE": phases, "LABEL": labels} {
		w.u32(w.scopesAt+uint64(w.scope[name])*scopeBytes+116, 0)
		w.u32(w.scopesAt+uint64(w.scope[name])*scopeBytes+120, 1<<26)
		w.u64(w.buffer[1]+bufferHead+rowsBytes*uint64(w.scope[name]), rows)
	}
}

// Whatever is wrong is one clear line, and nothing hangs.
func TestDamaged(t *testing.T) {
	const top = 1<<64 - 8
	scope := func(w *builder, name string) uint64 { return w.scopesAt + uint64(w.scope[name])*scopeBytes }
	for _, c := range []struct {
		what, want string
		damage     func(w *builder)
	}{
		{"no magic yet", "just being made", func(w *builder) { w.u64(0, 0) }},
		{"other magic", "magic is not there", func(w *builder) { w.b[0] = 'X' }},
		{"byte order", "another byte order", func(w *builder) { w.u32(8, 0x04030201) }},
		{"newer major", "layout version 2, this tslab reads version 1", func(w *builder) { w.u32(12, 2) }},
		{"short header", "header of the segment is too short", func(w *builder) { w.u32(16, 255) }},
		{"longer than it is", "bytes and has", func(w *builder) { w.u64(24, uint64(len(w.b))+1) }},
		{"other pid", "shows no statistics of its own; it reads those of pid 999999999", func(w *builder) { w.u64(32, 999999999) }},
		{"earlier process", "an earlier process with the same id", func(w *builder) { w.u64(40, 1) }},
		{"other boot", "before the machine was started", func(w *builder) { w.b[48] ^= 1 }},
		{"endless boot id", "does not end", func(w *builder) { copy(w.b[48:88], strings.Repeat("x", 40)) }},
		{"scopes beyond", "table of scopes", func(w *builder) { w.u64(120, top) }},
		{"metrics overflow", "table of metrics", func(w *builder) { w.u64(136, uint64(len(w.b))-8) }},
		{"too many metrics", "table of metrics", func(w *builder) { w.u32(144, 1<<31) }},
		{"stride 0", "table of slots", func(w *builder) { w.u32(164, 0) }},
		{"huge stride", "table of slots", func(w *builder) { w.u32(164, 1<<31) }},
		{"odd place", "table of scopes", func(w *builder) { w.u64(120, headerBytes+4) }},
		{"endless name", "does not end", func(w *builder) { copy(w.b[w.scopesAt:], strings.Repeat("x", 32)) }},
		{"rows in the head", "rows of GLOBAL lie where they cannot", func(w *builder) { w.u64(scope(w, "GLOBAL")+128, 8) }},
		{"rows beyond", "GLOBAL has more rows than room", func(w *builder) { w.u64(scope(w, "GLOBAL")+128, top) }},
		{"rows overflow", "PHASE has more rows than room", func(w *builder) {
			w.u32(scope(w, "PHASE")+120, 1<<32-1)
			w.u64(w.buffer[1]+bufferHead+rowsBytes*uint64(w.scope["PHASE"]), 1<<32-1)
		}},
		{"more rows than capacity", "PHASE has more rows than room", func(w *builder) {
			w.u64(w.buffer[1]+bufferHead+rowsBytes*uint64(w.scope["PHASE"]), testRows+1)
		}},
		{"rows of no bytes", "PHASE has more rows than room", func(w *builder) { w.emptyRows(1<<16+1, 0) }},
		{"rows of no bytes in two lists", "more rows than any should", func(w *builder) { w.emptyRows(1<<15, 1<<15+1) }},
		{"metric without scope", "belongs to no scope", func(w *builder) { w.u32(w.metricAt["GLOBAL.live_bytes"]+320, 99) }},
		{"metric beyond its row", "outside of its row", func(w *builder) { w.u32(w.metricAt["GLOBAL.live_bytes"]+336, 1<<32-8) }},
		{"buffer beyond", "a buffer lies outside", func(w *builder) { w.u64(w.slotsAt+64, top) }},
		{"buffer too long", "a buffer lies outside", func(w *builder) { w.u64(w.slotsAt+56, 1<<63) }},
		{"buffer too short", "a buffer is too short", func(w *builder) { w.u64(w.slotsAt+56, 16) }},
		{"no allocator", "no allocator now", func(w *builder) { w.u64(w.slotsAt, 0) }},
		{"nothing published", "not published anything yet", func(w *builder) { w.u64(w.slotsAt+16, 0) }},
		{"first for ever", "not published anything yet", func(w *builder) { w.u64(w.slotsAt+16, 1) }},
		{"never fits", "inconsistent", func(w *builder) { w.u64(w.buffer[1], 3) }},
		{"other allocator's", "inconsistent", func(w *builder) { w.u64(w.slotsAt+8, 78) }},
		{"other schema", "schema_version 9: this tslab reads version 3", func(w *builder) {
			w.u64(w.buffer[1]+w.offset[w.scope["GLOBAL"]]+uint64(le.Uint32(w.b[w.metricAt["GLOBAL.schema_version"]+336:])), 9)
		}},
	} {
		w := mine(t)
		c.damage(w)
		f := w.file(t)
		g, err := Attach(os.Getpid())
		if err == nil {
			_, err = g.Read(-1)
			g.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, not of %q", c.what, err, c.want)
		}
		f.Close()
	}
}

// Who reads a segment of somebody else and has one of its own shows its own, whichever comes first.
func TestReaderOfOthers(t *testing.T) {
	other, own := mine(t), mine(t)
	other.u64(32, 999999999)
	for _, order := range [][]*builder{{other, own}, {own, other}} {
		var files []*os.File
		for _, w := range order {
			files = append(files, w.file(t))
		}
		g, err := Attach(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		s, err := g.Read(-1)
		if err != nil || s.State != snapshot.Running || g.head.pid != uint64(os.Getpid()) {
			t.Errorf("%v: %v", s.State, err)
		}
		g.Close()
		for _, f := range files {
			f.Close()
		}
	}
	w := mine(t)
	w.u64(w.slotsAt, 2)
	f := w.file(t)
	defer f.Close()
	g, err := Attach(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if s, err := g.Read(-1); err != nil || s.State != snapshot.Ended {
		t.Errorf("a destroyed allocator: %v", err)
	}
}

// Any byte may be anything: no panic, no hang, at most an error.
func TestAnyByte(t *testing.T) {
	w := mine(t)
	f := w.file(t)
	tables := int(w.scopesAt) + w.scopes*scopeBytes
	for i := 0; i < int(w.slotsAt)+2*slotBytes; i += 12 {
		if i > tables && i < int(w.slotsAt) {
			i += 1201 // of the many metrics some
		}
		for _, v := range []byte{0, 0xff, 0x80} {
			_, _ = f.WriteAt([]byte{v, v, v, v}, int64(i))
			if g, err := Attach(os.Getpid()); err == nil {
				for k := range 2 {
					if _, b, err := g.copy(k); err == nil && b != nil {
						s, _ := g.slot(k)
						_, _ = g.decode(s, b)
					}
				}
				g.Close()
			}
			_, _ = f.WriteAt(w.b[i:i+4], int64(i))
		}
	}
}

func TestTruncatedAndShrinking(t *testing.T) {
	w := mine(t)
	f := w.file(t)
	g, err := Attach(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := f.Truncate(int64(w.buffer[1]) + 100); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Read(0); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("a segment that shrank: %v", err)
	}
	if err := f.Truncate(100); err != nil {
		t.Fatal(err)
	}
	if _, err := Attach(os.Getpid()); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("a segment of 100 bytes: %v", err)
	}
}

func TestWhoMayBeTrusted(t *testing.T) {
	w := mine(t)
	f := w.file(t)
	_ = f.Chmod(0o644)
	if _, err := Attach(os.Getpid()); err == nil || !strings.Contains(err.Error(), "not trusted") {
		t.Errorf("a segment that others read: %v", err)
	}
	if os.Geteuid() == 0 {
		_ = f.Chmod(0o600)
		_ = f.Chown(65534, 65534)
		if _, err := Attach(os.Getpid()); err == nil || !strings.Contains(err.Error(), "does not belong") {
			t.Errorf("a segment of somebody else: %v", err)
		}
	} else {
		t.Log("not root: the case of a segment of another user is not tried")
	}
}

// What only has the name is left alone, and never opened when that could block.
func TestNamesakes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "temporal-slab")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(dir, "segment.1.1")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Attach(os.Getpid()); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a FIFO: %v", err)
	}
	mine(t).file(t) // and the real one is found among them
	g, err := Attach(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	g.Close()
}

func TestWrongProcesses(t *testing.T) {
	c := testdata.Sleeper(t, "TSLAB_OPTIONS=segmant=1")
	pid := c.Process.Pid
	for pid, want := range map[int]string{0: "takes the id of a process", -5: "takes the id of a process", 1 << 30: "there is no such process",
		pid: "shows no statistics; start it with TSLAB_OPTIONS=segment=1 (or SlabOptions.segment); ignored in its TSLAB_OPTIONS: segmant=1 is no option: segment?"} {
		if _, err := Attach(pid); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("pid %d: %v", pid, err)
		}
	}
	_ = c.Process.Kill()
	for { // until it is a zombie
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(stat), ") Z ") {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := Attach(pid); err == nil || !strings.Contains(err.Error(), "no such process") {
		t.Errorf("a dead process: %v", err)
	}
	_ = c.Wait()
}

// A process that ends while it is looked at is told from one that only changed.
func TestEnded(t *testing.T) {
	mine(t).file(t)
	g, err := Attach(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	g.who.start++
	if _, err := g.Read(-1); !errors.Is(err, ErrEnded) {
		t.Error(err)
	}
}
