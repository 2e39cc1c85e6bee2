package heap

import (
	"bytes"
	"io"
	"os"
	"testing"

	"temporal-slab/tslab/internal/segment"
)

// FuzzParse: any bytes as a profile. One that is taken can be summed up, drawn, trimmed, compared and written, and is read
// again as what it was.
func FuzzParse(f *testing.F) {
	for _, p := range []*segment.Profile{raw(), {Period: 1}} {
		for _, values := range []int{always, Values} {
			var b, z bytes.Buffer
			if err := of(p, values).WriteUncompressed(&b); err != nil {
				f.Fatal(err)
			}
			if err := of(p, values).Write(&z); err != nil {
				f.Fatal(err)
			}
			f.Add(b.Bytes())
			f.Add(z.Bytes())
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parseUpTo(bytes.NewReader(b), 1<<20)
		if err != nil {
			return
		}
		for value := range len(p.SampleType) {
			r := Sum(p, value, Only{})
			_, _ = Compare(r, r, value)
			if err := Flame(io.Discard, Tree(p, value, Only{}), "title", "bytes"); err != nil {
				t.Fatal(err)
			}
		}
		if Has(p, EscapedObjects) {
			_ = Escapes(p, Only{})
		}
		_ = shallow(p)
		if d, err := Difference(p, p); err == nil {
			for _, s := range d.Sample {
				for _, v := range s.Value {
					if v != 0 {
						t.Fatalf("a profile differs from itself by %d", v)
					}
				}
			}
		}
		Trim(p)
		var again bytes.Buffer
		if p.CheckValid() != nil {
			return
		}
		if err := p.WriteUncompressed(&again); err != nil {
			t.Fatal(err)
		}
		q, err := Parse(&again)
		if err != nil {
			t.Fatalf("what was written is not read: %v", err)
		}
		if len(q.Sample) != len(p.Sample) || len(q.Location) != len(p.Location) {
			t.Fatalf("%d samples of %d", len(q.Sample), len(p.Sample))
		}
	})
}

// FuzzELF: any bytes as a program with functions.
func FuzzELF(f *testing.F) {
	f.Add(library(3, 20))
	f.Add(library(0, 1))
	if self, err := os.Executable(); err == nil {
		if b, err := os.ReadFile(self); err == nil {
			f.Add(b[:min(len(b), 4096)])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := parseELF(bytes.NewReader(b))
		if err != nil {
			return
		}
		for n, fn := range o.functions {
			if name := o.name(fn); len(name) > maxName || n > 64 {
				break
			}
			_ = o.find(fn.value)
		}
		for _, l := range o.loads[:min(len(o.loads), 64)] {
			_ = o.find(l.offset)
			_ = o.find(l.offset + l.bytes - 1)
		}
	})
}
