package segment

import (
	"errors"
	"math"
	"os"
	"testing"
	"unicode/utf8"

	"temporal-slab/tslab/internal/metrics"
)

// wound changes words of b as the input says, four bytes for the place and the way of each, eight for the value, and returns
// what it replaced, for healing.
func wound(b, input []byte, places []int) map[int]uint64 {
	was := map[int]uint64{}
	for ; len(input) >= 12 && len(was) < 32; input = input[12:] {
		way, v := le.Uint32(input), le.Uint64(input[4:])
		at := places[int(way>>8)%len(places)]
		if way&128 != 0 {
			at = int(way>>8) % (len(b) / 8) * 8
		}
		old := le.Uint64(b[at:])
		if _, ok := was[at]; !ok {
			was[at] = old
		}
		switch way % 4 {
		case 0:
			v %= 256
		case 1:
			v = old + v%33 - 16
		case 2:
			v = old ^ 1<<(v%64)
		}
		le.PutUint64(b[at:], v)
	}
	return was
}

func words(from, to uint64) (list []int) {
	for ; from+8 <= to; from += 8 {
		list = append(list, int(from))
	}
	return list
}

// FuzzSegment: a damaged segment is refused with a Bad, or what is read of it is whole.
func FuzzSegment(f *testing.F) {
	who, err := identify(os.Getpid())
	if err != nil {
		f.Fatal(err)
	}
	w := build(who.innerPid, who.start, who.boot)
	places := append(words(0, headerBytes), words(w.slotsAt, w.slotsAt+2*slotBytes)...)
	places = append(places, words(w.buffer[1], w.buffer[1]+bufferHead+rowsBytes*uint64(w.scopes))...)
	for k := range uint64(w.scopes) {
		places = append(places, words(w.scopesAt+k*scopeBytes+112, w.scopesAt+(k+1)*scopeBytes)...)
	}
	for _, at := range w.metricAt {
		places = append(places, words(at+320, at+metricBytes)...)
	}
	file := w.file(f)
	put := func(at int) {
		if _, err := file.WriteAt(w.b[at:at+8], int64(at)); err != nil {
			f.Fatal(err)
		}
	}
	f.Add([]byte{})
	f.Add([]byte("\x00\x04\x00\x00\xff\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x03\x90\x00\x00\xff\xff\xff\xff\xff\xff\xff\x7f\x01\x20\x00\x00\x11\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, input []byte) {
		was := wound(w.b, input, places)
		for at := range was {
			put(at)
		}
		readWounded(t, file, who)
		for at, v := range was {
			w.u64(uint64(at), v)
			put(at)
		}
	})
}

func mustBeBad(t *testing.T, err error) {
	t.Helper()
	if !errors.As(err, new(*Bad)) && !errors.As(err, new(*foreign)) {
		t.Fatalf("an error that is no complaint about the segment: %v", err)
	}
}

func readWounded(t *testing.T, file *os.File, who identity) {
	g, err := load(file, who, statistics)
	if err != nil {
		mustBeBad(t, err)
		return
	}
	if _, err = g.Allocators(); err != nil {
		mustBeBad(t, err)
		return
	}
	for n := range min(g.head.slots.count, 4) {
		s, b, err := g.copy(int(n))
		if b == nil {
			if err != nil {
				mustBeBad(t, err)
			}
			continue
		}
		out, err := g.decode(s, b)
		if err != nil {
			mustBeBad(t, err)
			continue
		}
		judge(out, le.Uint64(b[16:]), who.state(), int(n), s.changed)
		for _, m := range metrics.All() {
			for _, r := range out.Rows(m.Section) {
				switch {
				case !r.Has(m):
				case m.Type == metrics.String && !utf8.ValidString(r.Text(m)):
					t.Fatalf("%s is no UTF-8: %q", m.Key, r.Text(m))
				case m.Type == metrics.F64 && (math.IsNaN(r.Float(m)) || math.IsInf(r.Float(m), 0)):
					t.Fatalf("%s is no number", m.Key)
				}
			}
		}
	}
}

// FuzzProfile: the buffer of a heap profile, any bytes.
func FuzzProfile(f *testing.F) {
	w := shownProfile(f)
	f.Add(w.b[w.data : w.data+shownBytes])
	f.Add(make([]byte, profileHead))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < profileHead || len(b)%8 != 0 {
			return
		}
		p, err := decodeProfile(b)
		if err != nil {
			mustBeBad(t, err)
			return
		}
		for _, l := range p.Live {
			if l.Stack < 0 || l.Stack >= len(p.Stacks) || l.Bytes == 0 {
				t.Fatalf("an object in use %+v of %d stacks", l, len(p.Stacks))
			}
		}
		for _, s := range p.Stacks {
			if len(s.Frames) == 0 || !utf8.ValidString(s.Label) || !utf8.ValidString(s.Maker) || !(s.Objects >= 0) || !(s.Bytes >= 0) ||
				!(s.EscapedObjects >= 0) || !(s.EscapedBytes >= 0) {
				t.Fatalf("a stack %+v", s)
			}
		}
	})
}

// FuzzMounts: lists of mounts and of one open file, as another process shows them.
func FuzzMounts(f *testing.F) {
	f.Add("pos:\t0\nmnt_id:\t29\n", "29 1 0:1 / / rw - ext4 /dev/vda rw\n30 1 0:2 / /x rw - fuse.sshfs host rw\n", "12")
	f.Add("mnt_id: 30", "30 1 0:2 / /x rw - nfs4 host rw\n", "")
	f.Fuzz(func(t *testing.T, info, mounts, memory string) {
		where := slowMount(info, mounts, memory)
		if memory != "" && mountOf(info) == memory && where != "" {
			t.Fatalf("the mount of memory lies on %q", where)
		}
	})
}
