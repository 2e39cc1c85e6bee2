package segment

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// shown is a profile's file as docs/segment.md describes it: two slots, of which the first has published once. One stack
// of two frames with a maker, two objects in use.
type shown struct {
	b          []byte
	slot, data int // where they are
}

const (
	shownBuffer = 4096
	shownStack  = profileHead + 2*profileLive
	shownMaker  = shownStack + profileStack + 2*8
	shownBytes  = shownMaker + profileMaker
)

func (w *shown) u64(at int, v uint64) { le.PutUint64(w.b[at:], v) }
func (w *shown) u32(at int, v uint32) { le.PutUint32(w.b[at:], v) }

func shownProfile(t testing.TB) *shown {
	t.Helper()
	who, err := identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	w := &shown{b: make([]byte, headerBytes+2*slotBytes+4*shownBuffer), slot: headerBytes, data: headerBytes + 2*slotBytes}
	copy(w.b, profiles.magic)
	w.u32(8, endianMark)
	w.u32(12, major)
	w.u32(16, headerBytes)
	w.u64(24, uint64(len(w.b)))
	w.u64(32, who.innerPid)
	w.u64(40, who.start)
	copy(w.b[48:88], who.boot)
	w.u64(152, headerBytes)
	w.u32(160, 2)
	w.u32(164, slotBytes)
	for k := range 2 {
		w.u64(w.slot+k*slotBytes+56, shownBuffer)
		w.u64(w.slot+k*slotBytes+64, uint64(w.data+2*k*shownBuffer+shownBuffer)) // publication 1 is in the second, which is here first
		w.u64(w.slot+k*slotBytes+72, uint64(w.data+2*k*shownBuffer))
	}
	w.u64(w.slot, 1)
	w.u64(w.slot+8, 77)
	w.u64(w.slot+16, 2)
	for i, v := range []uint64{1, 77, monotonic(), shownBytes, 4096, 10, 3, 2, 1, 2, 1} {
		w.u64(w.data+8*i, v)
	}
	for k := range 2 {
		at := w.data + profileHead + k*profileLive
		w.u64(at, uint64(100*(k+1)))
		w.u64(at+8, 5)
		w.u32(at+20, 7)
	}
	at := w.data + shownStack
	copy(w.b[at:], "GET /users")
	w.u64(at+32, math.Float64bits(40.5))
	w.u64(at+40, math.Float64bits(8000))
	w.u64(at+48, 2)
	w.u64(at+56, 0x401000)
	w.u64(at+64, 0x402000)
	copy(w.b[w.data+shownMaker+8:], "POST /users")
	return w
}

func (w *shown) file(t *testing.T) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate(profiles.memfd, unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "profile")
	t.Cleanup(func() { f.Close() })
	if err := f.Chmod(0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(w.b, 0); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestProfile(t *testing.T) {
	mine(t).file(t) // beside the segment, as it is
	shownProfile(t).file(t)
	for _, which := range []int{-1, 0} {
		list, err := ReadProfile(os.Getpid(), which)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		p := list[0]
		if p.Period != 4096 || p.Samples != 10 || p.NoStack != 3 || p.NotFollowed != 2 || len(p.Stacks) != 1 || len(p.Live) != 2 {
			t.Fatalf("%+v", p)
		}
		s, l := p.Stacks[0], p.Live[1]
		if s.Label != "GET /users" || s.Maker != "POST /users" || s.Objects != 40.5 || s.Bytes != 8000 || len(s.Frames) != 2 || s.Frames[1] != 0x402000 {
			t.Errorf("stack %+v", s)
		}
		if l != (Live{Bytes: 200, Era: 5, Stack: 0, Class: 7}) {
			t.Errorf("live %+v", l)
		}
		exe, _ := os.Readlink("/proc/self/exe")
		found := false
		for _, m := range p.Mappings {
			found = found || m.Path == exe && m.High > m.Low
		}
		if !found {
			t.Errorf("no mapping of %s", exe)
		}
	}
	if g, err := Attach(os.Getpid()); err != nil {
		t.Errorf("the segment beside it: %v", err)
	} else {
		g.Close()
	}
}

// While the next is written for ever the last whole one is read.
func TestProfileOddSequence(t *testing.T) {
	w := shownProfile(t)
	w.u64(w.slot+16, 3)
	copy(w.b[w.data+shownBuffer:], strings.Repeat("\xff", shownBuffer))
	w.file(t)
	if p, err := ReadProfile(os.Getpid(), -1); err != nil || len(p) != 1 || len(p[0].Live) != 2 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestProfileDamaged(t *testing.T) {
	for _, c := range []struct {
		what, want string
		damage     func(w *shown)
	}{
		{"no magic yet", "just being made", func(w *shown) { w.u64(0, 0) }},
		{"a segment's magic", "magic is not there", func(w *shown) { copy(w.b, statistics.magic) }},
		{"newer major", "layout version 2", func(w *shown) { w.u32(12, 2) }},
		{"longer than it is", "bytes and has", func(w *shown) { w.u64(24, 1<<40) }},
		{"earlier process", "an earlier process", func(w *shown) { w.u64(40, 1) }},
		{"slots beyond", "table of slots", func(w *shown) { w.u64(152, 1<<64-8) }},
		{"buffer beyond", "outside of the segment", func(w *shown) { w.u64(w.slot+72, 1<<64-8) }},
		{"buffer too long", "outside of the segment", func(w *shown) { w.u64(w.slot+56, 1<<63) }},
		{"buffer too short", "too short", func(w *shown) { w.u64(w.slot+56, 88) }},
		{"no allocator", "no allocator now", func(w *shown) { w.u64(w.slot, 0) }},
		{"first for ever", "not published anything yet", func(w *shown) { w.u64(w.slot+16, 1) }},
		{"never fits", "inconsistent", func(w *shown) { w.u64(w.data, 5) }},
		{"other allocator's", "inconsistent", func(w *shown) { w.u64(w.slot+8, 78) }},
		{"bytes overflow", "which is damaged", func(w *shown) { w.u64(w.data+24, 1<<64-8) }},
		{"bytes 0", "which is damaged", func(w *shown) { w.u64(w.data+24, 0) }},
		{"more bytes than any profile has", "which is damaged", func(w *shown) {
			w.b = append(w.b, make([]byte, 2*maxProfile)...)
			w.u64(24, uint64(len(w.b)))
			w.u64(w.slot+56, 2*maxProfile)
			w.u64(w.data+24, maxProfile+8)
		}},
		{"odd bytes", "which is damaged", func(w *shown) { w.u64(w.data+24, shownBytes-1) }},
		{"no period", "more rows than room", func(w *shown) { w.u64(w.data+32, 0) }},
		{"stacks overflow", "more rows than room", func(w *shown) { w.u64(w.data+64, 1<<61) }},
		{"live overflow", "more rows than room", func(w *shown) { w.u64(w.data+72, 1<<61+1) }},
		{"two stacks", "stacks are cut off", func(w *shown) { w.u64(w.data+64, 2) }},
		{"two makers", "makers are cut off", func(w *shown) { w.u64(w.data+80, 2) }},
		{"makers overflow", "makers are cut off", func(w *shown) { w.u64(w.data+80, 1<<61) }},
		{"a maker of an unknown stack", "a maker makes no sense", func(w *shown) { w.u64(w.data+shownMaker, 1) }},
		{"a maker's endless label", "a maker makes no sense", func(w *shown) { copy(w.b[w.data+shownMaker+8:], strings.Repeat("x", 32)) }},
		{"unknown stack", "object in use makes no sense", func(w *shown) { w.u32(w.data+profileHead+16, 1) }},
		{"object of no size", "object in use makes no sense", func(w *shown) { w.u64(w.data+profileHead, 0) }},
		{"huge object", "object in use makes no sense", func(w *shown) { w.u64(w.data+profileHead, 1<<63) }},
		{"endless label", "a label does not end", func(w *shown) { copy(w.b[w.data+shownStack:], strings.Repeat("x", 32)) }},
		{"NaN", "a sum is no number", func(w *shown) { w.u64(w.data+shownStack+32, math.Float64bits(math.NaN())) }},
		{"infinite", "a sum is no number", func(w *shown) { w.u64(w.data+shownStack+40, math.Float64bits(math.Inf(1))) }},
		{"negative", "a sum is no number", func(w *shown) { w.u64(w.data+shownStack+32, math.Float64bits(-1)) }},
		{"no frames", "deeper than there is room", func(w *shown) { w.u64(w.data+shownStack+48, 0) }},
		{"deep", "deeper than there is room", func(w *shown) { w.u64(w.data+shownStack+48, 8) }},
		{"overflowing depth", "deeper than there is room", func(w *shown) { w.u64(w.data+shownStack+48, 1<<61+2) }},
	} {
		w := shownProfile(t)
		c.damage(w)
		f := w.file(t)
		_, err := ReadProfile(os.Getpid(), -1)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, not of %q", c.what, err, c.want)
		}
		f.Close()
	}
}

// Any byte may be anything: no panic, no hang, at most an error.
func TestProfileAnyByte(t *testing.T) {
	w := shownProfile(t)
	for i := range shownBytes {
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			b := append([]byte{}, w.b[w.data:w.data+shownBytes]...)
			b[i] = v
			_, _ = decodeProfile(b)
		}
	}
	for n := profileHead; n < shownBytes; n += 8 {
		if _, err := decodeProfile(w.b[w.data : w.data+n]); err == nil {
			t.Errorf("%d bytes of %d are a profile", n, shownBytes)
		}
	}
}

func TestProfileTruncated(t *testing.T) {
	w := shownProfile(t)
	f := w.file(t)
	g, err := attach(os.Getpid(), profiles)
	if err != nil || g == nil {
		t.Fatal(g, err)
	}
	defer g.Close()
	if err := f.Truncate(int64(w.data + 50)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.profile(0); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("a profile that shrank: %v", err)
	}
	if _, err := g.profile(9); err == nil || !strings.Contains(err.Error(), "no allocator 9") {
		t.Errorf("slot 9: %v", err)
	}
	if _, err := g.profile(1); err == nil || !strings.Contains(err.Error(), "shows no heap profile") {
		t.Errorf("slot 1: %v", err)
	}
}

// What is missing is said.
func TestNoProfile(t *testing.T) {
	if _, err := ReadProfile(os.Getpid(), -1); err == nil || !strings.Contains(err.Error(), "segment=1,profile_bytes=512k (or SlabOptions)") {
		t.Errorf("neither: %v", err)
	}
	f := mine(t).file(t)
	if _, err := ReadProfile(os.Getpid(), -1); err == nil || !strings.Contains(err.Error(), "shows statistics and no heap profile; start it with") {
		t.Errorf("a segment only: %v", err)
	}
	f.Close()
	if _, err := ReadProfile(1<<30, -1); err == nil || !strings.Contains(err.Error(), "there is no such process") {
		t.Errorf("no process: %v", err)
	}
}

// Links are told apart by their text alone.
func TestLinks(t *testing.T) {
	for _, c := range []struct {
		to                 string
		statistic, profile bool
	}{
		{"/memfd:temporal-slab (deleted)", true, false},
		{"/memfd:tslab-profile (deleted)", false, true},
		{"/run/user/7/temporal-slab/segment.12.ab (deleted)", true, false},
		{"/tmp/temporal-slab-7/profile.12.ab (deleted)", false, true},
		{"/home/me/temporal-slab/src/segment.c", true, false}, // looked at, and no segment
		{"/home/me/temporal-slab", false, false},
		{"socket:[12]", false, false},
	} {
		if s, p := statistics.linked(c.to), profiles.linked(c.to); s != c.statistic || p != c.profile {
			t.Errorf("%s: %v %v", c.to, s, p)
		}
	}
}

// A file on somebody else's machine is known by its mount, whatever it is called; so is one of a mount that is gone.
func TestSlowMounts(t *testing.T) {
	const gone = "a mount that the process does not list"
	const mounts = "24 1 0:22 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n" +
		"31 24 0:40 / /run/user/7 rw - tmpfs tmpfs rw\n" +
		"77 24 0:51 / /home rw,noatime shared:3 master:1 - nfs4 server:/home rw\n" +
		"78 24 0:52 / /mnt/s rw - fuse.sshfs me@there: rw\n"
	for id, want := range map[string]string{"24": "", "31": "", "77": "nfs4", "78": "fuse.sshfs", "5": "", "99": gone, "7": gone, "": gone} {
		if got := slowMount("pos:\t0\nflags:\t0100000\nmnt_id:\t"+id+"\nino:\t3\n", mounts, "5"); got != want {
			t.Errorf("mount %s: %q, not %q", id, got, want)
		}
	}
	if got := slowMount("", mounts, "5") + slowMount("mnt_id:\t77\n", "77 - \n", "5"); got != gone+gone {
		t.Errorf("of nothing: %q", got)
	}
	if got := slowMount("", mounts, "") + slowMount("mnt_id:\t77\n", mounts, ""); got != "nfs4" {
		t.Errorf("where no memory is known: %q", got)
	}
	f, err := os.Open("/proc/self/exe") // and asked for real ones
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	t.Logf("this program lies on %q, and memory on mount %q", slowDisk(os.Getpid(), strconv.Itoa(int(f.Fd()))), memoryMount())
	w := mine(t).file(t)
	if got := slowDisk(os.Getpid(), strconv.Itoa(int(w.Fd()))); got != "" {
		t.Errorf("memory lies on %q", got)
	}
}
