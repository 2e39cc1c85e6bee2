package heap

import (
	"bytes"
	"compress/gzip"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"temporal-slab/tslab/internal/segment"
)

func raw() *segment.Profile {
	return &segment.Profile{Pid: 1, Period: 1000, Samples: 12, NoStack: 1,
		Stacks: []segment.Stack{{Label: "a", Objects: 2.5, Bytes: 250, Frames: []uint64{0x1001, 0x2001, 0x1001}},
			{Label: "b", Objects: 1.5, Bytes: 1500, Frames: []uint64{0x9001}}},
		Live:     []segment.Live{{Bytes: 100, Era: 3, Stack: 0, Class: 4}, {Bytes: 100000, Era: 4, Stack: 1, Class: 40}},
		Mappings: []segment.Mapping{{Low: 0x1000, High: 0x3000, Offset: 0x500, Path: "/nowhere/program"}}}
}

func TestOf(t *testing.T) {
	p := Of(raw())
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
	r := Sum(p, AllocSpace, nil)
	w := 1 / (1 - math.Exp(-0.1)) // an object of 100 bytes, sampled at one byte in 1000
	if want := [Values]int64{4, 1750, int64(w + 1), int64(100*w + 100000)}; r.Total != want || r.InUse != 2 {
		t.Errorf("total %v, not %v; %d in use", r.Total, want, r.InUse)
	}
	if len(r.Labels) != 2 || r.Labels[0].Name != "b" || r.Labels[1].Values[AllocSpace] != 250 {
		t.Errorf("labels %+v", r.Labels)
	}
	// On a stack twice, counted once; without a name the file, without a file the address.
	want := []Function{{"0x9000", 1500, 1500}, {"[program]", 250, 250}}
	if !reflect.DeepEqual(r.Functions, want) {
		t.Errorf("functions %+v", r.Functions)
	}
	only := "a"
	if r = Sum(p, AllocSpace, &only); len(r.Functions) != 1 || r.Functions[0].Flat != 250 || r.Total[AllocSpace] != 1750 {
		t.Errorf("of one label %+v", r)
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
	o, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.buildID) != 40 {
		t.Logf("build id %q", o.buildID)
	}
	tried := 0
	for _, f := range o.functions {
		for _, l := range o.loads {
			if f.Name != "main" && f.Name != "slab_stats_json" || f.Value < l.Vaddr || f.Value-l.Vaddr >= l.Filesz {
				continue
			}
			tried++
			first := f.Value - l.Vaddr + l.Off
			for _, at := range []uint64{first, first + f.Size - 1} {
				if name := o.find(at); name != f.Name {
					t.Errorf("%s + %d is %q", f.Name, at-first, name)
				}
			}
			if name := o.find(first + f.Size); name == f.Name {
				t.Errorf("%s is also behind its end", name)
			}
			p := Of(raw())
			*p.Mapping[0] = profile.Mapping{ID: 1, Start: 1 << 40, Limit: 1<<40 + l.Filesz, Offset: l.Off, File: path}
			at := p.Sample[0].Location[0]
			at.Mapping, at.Address = p.Mapping[0], 1<<40+first-l.Off+1
			if complaints := Symbolize(p, 0); len(complaints) != 0 || len(at.Line) != 1 || at.Line[0].Function.Name != f.Name || !p.Mapping[0].HasFunctions {
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
		if o, err := read(dir + "/" + name); err == nil && len(o.functions) == 0 {
			t.Errorf("%s: neither functions nor an error", name)
		}
	}
	for i := 0; i < 4096; i += 9 { // its header and tables
		b := append([]byte{}, whole[:min(len(whole), 1<<16)]...)
		b[i] ^= 0xff
		if err := os.WriteFile(dir+"/odd", b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = read(dir + "/odd")
		if i == 63 {
			i = 3900
		}
	}
	if _, err := read("/dev/zero"); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a device: %v", err)
	}
}

func TestParseHostile(t *testing.T) {
	var good bytes.Buffer
	if err := Of(raw()).WriteUncompressed(&good); err != nil {
		t.Fatal(err)
	}
	for i := range good.Bytes() {
		for _, v := range []byte{0, 0x7f, 0x80, 0xff} {
			b := append([]byte{}, good.Bytes()...)
			b[i] = v
			if p, err := Parse(bytes.NewReader(b)); err == nil {
				Sum(p, InuseSpace, nil)
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
	negative := Of(raw())
	negative.Sample[0].Value[0] = -5
	var minus bytes.Buffer
	if err := negative.Write(&minus); err != nil {
		t.Fatal(err)
	}
	for want, b := range map[string][]byte{"is empty": nil, "no profile for pprof": []byte(`{"version": 1}`), "more than 4 MiB": bomb.Bytes(),
		"no heap profile": cpu.Bytes(), "a sample of -5": minus.Bytes()} {
		if _, err := parseUpTo(bytes.NewReader(b), 4<<20); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not of %q", err, want)
		}
	}
}
