package heap

import (
	"bytes"
	"compress/gzip"
	"math"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"golang.org/x/sys/unix"

	"temporal-slab/tslab/internal/segment"
)

func raw() *segment.Profile {
	return &segment.Profile{Pid: 1, Period: 1000, Samples: 12, NoStack: 1,
		Stacks: []segment.Stack{{Label: "a", Objects: 2.5, Bytes: 250, Frames: []uint64{0x1001, 0x2001, 0x1001}},
			{Label: "b", Maker: "a", Objects: 1.5, Bytes: 1500, Frames: []uint64{0x9001}}},
		Live:     []segment.Live{{Bytes: 100, Era: 3, Stack: 0, Class: 4}, {Bytes: 100000, Era: 4, Stack: 1, Class: 40}},
		Mappings: []segment.Mapping{{Low: 0x1000, High: 0x3000, Offset: 0x500, Path: "/nowhere/program"}}}
}

func TestOf(t *testing.T) {
	p := of(raw(), always)
	if err := p.CheckValid(); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	again, err := Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	if again.String() != p.String() || again.DefaultSampleType != "inuse_space" || again.Period != 1000 {
		t.Errorf("what is read is not what was written:\n%s\n%s", again, p)
	}
	r := Sum(p, AllocSpace, Only{})
	w := 1 / (1 - math.Exp(-0.1)) // an object of 100 bytes, sampled at one byte in 1000
	if want := [Values]int64{4, 1750, int64(w + 1), int64(100*w + 100000)}; r.Total != want || r.InUse != 2 {
		t.Errorf("total %v, not %v; %d in use", r.Total, want, r.InUse)
	}
	if len(r.Labels) != 2 || !r.Made || r.Labels[0].Name != "b" || r.Labels[0].Maker != "a" || r.Labels[1].Maker != "" || r.Labels[1].Values[AllocSpace] != 250 {
		t.Errorf("labels %+v", r.Labels)
	}
	// On a stack twice, counted once; without a name the file, without a file the address.
	want := []Function{{"0x9000", 1500, 1500}, {"[program]", 250, 250}}
	if !reflect.DeepEqual(r.Functions, want) {
		t.Errorf("functions %+v", r.Functions)
	}
	only := "a"
	if r = Sum(p, AllocSpace, Only{Label: &only}); len(r.Functions) != 1 || r.Functions[0].Flat != 250 || r.Total[AllocSpace] != 1750 {
		t.Errorf("of one label %+v", r)
	}
	if r = Sum(p, AllocSpace, Only{Maker: &only}); len(r.Functions) != 1 || r.Functions[0].Flat != 1500 {
		t.Errorf("of one maker %+v", r)
	}
	if r = Sum(p, AllocSpace, Only{&only, &only}); len(r.Functions) != 0 {
		t.Errorf("of both %+v", r)
	}
	if complaints := Symbolize(p, 0); len(complaints) != 1 || !strings.Contains(complaints[0], "no names of functions in /nowhere/program") {
		t.Errorf("complaints %v", complaints)
	}
}

// A function is found at each of its bytes, and nothing beyond the code. (Tests of Go have no symbols themselves.)
func TestSymbols(t *testing.T) {
	path := os.Getenv("TSLAB_STATS_DUMP")
	if path == "" {
		t.Skip("TSLAB_STATS_DUMP names no program with symbols")
	}
	o, err := read(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.buildID) != 40 {
		t.Logf("build id %q", o.buildID)
	}
	tried := 0
	for _, f := range o.functions {
		for _, l := range o.loads {
			wanted := o.name(f)
			if wanted != "main" && wanted != "slab_stats_json" || f.value < l.address || f.value-l.address >= l.bytes {
				continue
			}
			tried++
			first := f.value - l.address + l.offset
			for _, at := range []uint64{first, first + f.size - 1} {
				if name := o.find(at); name != wanted {
					t.Errorf("%s + %d is %q", wanted, at-first, name)
				}
			}
			if name := o.find(first + f.size); name == wanted {
				t.Errorf("%s is also behind its end", name)
			}
			p := of(raw(), always)
			*p.Mapping[0] = profile.Mapping{ID: 1, Start: 1 << 40, Limit: 1<<40 + l.bytes, Offset: l.offset, File: path}
			at := p.Sample[0].Location[0]
			at.Mapping, at.Address = p.Mapping[0], 1<<40+first-l.offset+1
			if complaints := Symbolize(p, 0); len(complaints) != 0 || len(at.Line) != 1 || at.Line[0].Function.Name != wanted || !p.Mapping[0].HasFunctions {
				t.Errorf("%v: %+v", complaints, at)
			}
			if err := p.CheckValid(); err != nil {
				t.Error(err)
			}
		}
	}
	if tried != 2 {
		t.Errorf("%d functions tried", tried)
	}
	if name := o.find(0); name != "" {
		t.Errorf("%q at the header of the file", name)
	}
}

// No file is trusted.
func TestSymbolsOfOddFiles(t *testing.T) {
	dir := t.TempDir()
	whole, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"empty": nil, "text": []byte("#!/bin/sh\n"), "cut": whole[:4096], "half": whole[:len(whole)/2]} {
		if err := os.WriteFile(dir+"/"+name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if o, err := read(dir+"/"+name, 0); err == nil && len(o.functions) == 0 {
			t.Errorf("%s: neither functions nor an error", name)
		}
	}
	for i := 0; i < 4096; i += 9 { // its header and tables
		b := append([]byte{}, whole[:min(len(whole), 1<<16)]...)
		b[i] ^= 0xff
		if err := os.WriteFile(dir+"/odd", b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = read(dir+"/odd", 0)
		if i == 63 {
			i = 3900
		}
	}
	for what, n := range map[string]uint64{"too large": 1 << 40, "damaged": 1 << 21} { // as much as a sparse file may claim; more than there is
		path, b := dir+"/claims", library(64, 9)
		le.PutUint64(b[64+56+2*64+32:], n)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := read(path, 0); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("names of %d bytes: %v", n, err)
		}
	}
	if _, err := read("/dev/zero", 0); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a device: %v", err)
	}
}

// library is an ELF file with many functions, whose names all begin with the one name that there is.
func library(functions, nameBytes int) []byte {
	const names = 1 << 20
	table := 64 + 56 + 3*64
	b := make([]byte, table+functions*24+names)
	copy(b, "\x7fELF\x02\x01")
	put := func(at int, v uint64) { le.PutUint64(b[at:], v) }
	put(32, 64)    // the one segment
	put(40, 64+56) // three sections
	put(54, 1<<16|56)
	put(58, 3<<16|64)
	put(64, 1)
	put(64+32, 1<<20)
	symbols, text := 64+56+64, 64+56+2*64
	put(symbols, 2<<32)
	put(symbols+24, uint64(table))
	put(symbols+32, uint64(functions*24))
	put(symbols+40, 2)
	put(text, 3<<32)
	put(text+24, uint64(table+functions*24))
	put(text+32, names)
	for k := range functions {
		put(table+24*k, 2<<32)
		put(table+24*k+8, uint64(k+1))
		put(table+24*k+16, 1)
	}
	for k := range names - 1 {
		b[len(b)-names+k] = 'a' + byte(k%26)
	}
	b[len(b)-names+nameBytes] = 0
	return b
}

// Names are copied when they are asked for, and only those that a function may have.
func TestSymbolsAreBounded(t *testing.T) {
	path := t.TempDir() + "/library"
	for _, c := range []struct{ name, found int }{{1000, 1000}, {60000, 60000}, {1 << 19, 0}} {
		b := library(2000, c.name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		o, err := read(path, 0)
		runtime.ReadMemStats(&after)
		if err != nil || len(o.functions) != 2000 || len(o.find(7)) != c.found || o.find(2001) != "" {
			t.Fatalf("a name of %d bytes: %v", c.name, err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > uint64(8*len(b)) {
			t.Errorf("%d bytes of memory for a file of %d", got, len(b))
		}
	}
}

// A mapped file whose name is another file's by now gives no names; nor does one that is not mapped there.
func TestReplacedFile(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"/mapped", "/other"} {
		if err := os.WriteFile(dir+name, library(3, 9), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(dir+"/mapped", &st); err != nil {
		t.Fatal(err)
	}
	if _, err := read(dir+"/mapped", st.Ino); err != nil {
		t.Error(err)
	}
	if _, err := read(dir+"/other", st.Ino); err == nil || !strings.Contains(err.Error(), "another file") {
		t.Errorf("another file: %v", err)
	}
	p := of(raw(), always)
	p.Mapping[0].File = dir + "/mapped"
	if complaints := Symbolize(p, os.Getpid()); len(complaints) != 1 || !strings.Contains(complaints[0], "mapped no more") {
		t.Errorf("not mapped there: %v", complaints)
	}
}

func TestParseHostile(t *testing.T) {
	var good bytes.Buffer
	if err := of(raw(), always).WriteUncompressed(&good); err != nil {
		t.Fatal(err)
	}
	for i := range good.Bytes() {
		for _, v := range []byte{0, 0x7f, 0x80, 0xff} {
			b := append([]byte{}, good.Bytes()...)
			b[i] = v
			if p, err := Parse(bytes.NewReader(b)); err == nil {
				Sum(p, InuseSpace, Only{})
			}
		}
		_, _ = Parse(bytes.NewReader(good.Bytes()[:i]))
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 5 {
		_, _ = z.Write(make([]byte, 1<<20))
	}
	z.Close()
	other := &profile.Profile{SampleType: []*profile.ValueType{{Type: "cpu", Unit: "ns"}}}
	var cpu bytes.Buffer
	if err := other.Write(&cpu); err != nil {
		t.Fatal(err)
	}
	negative := of(raw(), always)
	negative.Sample[0].Value[0] = -5
	var minus bytes.Buffer
	if err := negative.Write(&minus); err != nil {
		t.Fatal(err)
	}
	for want, b := range map[string][]byte{"is empty": nil, "not a profile for pprof": []byte(`{"version": 1}`), "more than 4 MiB": bomb.Bytes(),
		"not a heap profile": cpu.Bytes(), "a sample of -5": minus.Bytes()} {
		if _, err := parseUpTo(bytes.NewReader(b), 4<<20); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not of %q", err, want)
		}
	}
}

// escaping is a profile of two stacks with the option escape_stacks, named, with frames of the library on top.
func escaping() *profile.Profile {
	r := raw()
	r.Period, r.Escapes = 1, true
	r.Mappings = append(r.Mappings, segment.Mapping{Low: 0x9000, High: 0xa000, Path: "/usr/lib/libtemporal_slab_preload.so"})
	r.Stacks = []segment.Stack{
		{Label: "/page", Objects: 30, Bytes: 3000, EscapedObjects: 20, EscapedBytes: 2000, Frames: []uint64{0x9001, 0x9101, 0x1001, 0x2001}},
		{Label: "/page", Objects: 5, Bytes: 50, Frames: []uint64{0x9001, 0x1101}},
		{Label: "/file", Objects: 7, Bytes: 70, EscapedObjects: 7, EscapedBytes: 70, Frames: []uint64{0x9001}}}
	r.Live = []segment.Live{{Bytes: 100, Era: 3, Escaped: true}, {Bytes: 100, Era: 4}, {Bytes: 10, Era: 5, Stack: 2, Escaped: true}}
	p := of(r, Values)
	for n, name := range map[uint64]string{0x1000: "make_page", 0x1100: "slab_asprintf", 0x2000: "handle"} {
		for _, l := range p.Location {
			if l.Address == n {
				f := &profile.Function{ID: n, Name: name}
				p.Function = append(p.Function, f)
				l.Line = []profile.Line{{Function: f}}
			}
		}
	}
	return p
}

// What escapes has a row for each stack; frames of the library are on none, but where there is nothing else.
func TestEscapes(t *testing.T) {
	p := escaping()
	Trim(p)
	Trim(p) // the same again
	want := []Escape{{Label: "/page", Objects: 20, Bytes: 2000, LiveObjects: 1, LiveBytes: 100, Stack: []string{"make_page", "handle"}},
		{Label: "/file", Objects: 7, Bytes: 70, LiveObjects: 1, LiveBytes: 10, Stack: []string{"[libtemporal_slab_preload.so]"}}}
	if got := Escapes(p, Only{}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	label := "/file"
	if got := Escapes(p, Only{Label: &label}); !reflect.DeepEqual(got, want[1:]) {
		t.Errorf("%+v", got)
	}
	if n := len(p.Sample[1].Location); n != 1 || namesOf(p.Sample[1].Location[0])[0] != "slab_asprintf" {
		t.Errorf("%d frames of the second", n)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	again, err := Parse(&b)
	if err != nil || !Has(again, EscapedSpace) || again.DropFrames != public {
		t.Fatalf("%v", err)
	}
	if Has(of(raw(), always), EscapedObjects) {
		t.Error("escapes without the option")
	}
	for name, is := range map[string]bool{"slab_malloc": true, "slab_strdup_outside": true, "epoch_domain_asprintf": true, "alloc_obj_epoch": true, "tsi_alloc_any": true, "tsi_text_print.isra.0": true,
		"slab_cache_refill": false, "my_slab_malloc": false, "malloc_hook": false, "epoch_domain_handler": false, "tsl_new": false} {
		if isOurs.MatchString(name) != is {
			t.Errorf("%s is ours: %v", name, !is)
		}
	}
}

// Functions of the program may have names like those within the library: they are left out on top alone, and where the library has no
// file of its own.
func TestTrimNames(t *testing.T) {
	for _, c := range []struct {
		own, name string
		want      []string
	}{{"/usr/lib/libtemporal_slab.so.0.3", "tsp_solve", []string{"tsp_solve", "handle"}}, {"/usr/lib/libtemporal_slab.so.0.3", "slab_strdup", []string{"handle"}},
		{"/usr/bin/other", "tsi_text_copy", []string{"handle"}}, {"/usr/bin/other", "slab_strdup", []string{"handle"}}} {
		for _, inner := range []string{"", "make_page"} { // what it calls
			r := raw()
			r.Mappings = append(r.Mappings, segment.Mapping{Low: 0x9000, High: 0xa000, Path: c.own})
			r.Stacks = []segment.Stack{{Label: "a", Objects: 1, Bytes: 10, Frames: []uint64{0x9001, 0x1001, 0x1101, 0x2001}}}
			r.Live = nil
			p := of(r, always)
			for n, name := range map[uint64]string{0x9000: "slab_malloc", 0x1000: inner, 0x1100: c.name, 0x2000: "handle"} {
				for _, l := range p.Location {
					if l.Address == n && name != "" {
						l.Line = []profile.Line{{Function: &profile.Function{ID: n, Name: name}}}
					}
				}
			}
			want := c.want
			if inner == "" { // nothing is between
				p.Sample[0].Location = slices.Delete(p.Sample[0].Location, 1, 2)
			} else {
				want = []string{inner, c.name, "handle"}
			}
			Trim(p)
			var got []string
			for _, l := range p.Sample[0].Location {
				got = append(got, namesOf(l)[0])
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %q called by %s: %q", c.own, inner, c.name, got)
			}
		}
	}
}

// Stacks that end in the program's middle are told, with what helps; those that end where threads and main begin are not.
func TestShallow(t *testing.T) {
	r := raw()
	r.Stacks = nil
	for n := range uint64(20) {
		r.Stacks = append(r.Stacks, segment.Stack{Label: "a", Objects: 1, Bytes: 10, Frames: []uint64{0x1001 + 16*n}})
	}
	r.Live = nil
	if line := shallow(of(r, always)); !strings.Contains(line, "of 20 stacks 20 end in the middle of /nowhere/program") || !strings.Contains(line, "-fno-omit-frame-pointer") {
		t.Errorf("%q", line)
	}
	r.Mappings = append(r.Mappings, segment.Mapping{Low: 0x5000, High: 0x6000, Path: "/lib/x86_64-linux-gnu/libc.so.6"})
	for n := range r.Stacks {
		if n > 2 {
			r.Stacks[n].Frames = append(r.Stacks[n].Frames, 0x5001)
		}
	}
	if line := shallow(of(r, always)); line != "" {
		t.Errorf("%q", line)
	}
}
