// Package heap makes a pprof profile of what a process has published, reads those that slab_profile_write wrote, finds
// the names of functions, and sums up what a profile says.
//
// Names are found in the files that the process has mapped, not in the process. A profile with names is left alone by
// pprof; one of a mapping whose file cannot be read has addresses there, and pprof looks for itself.
package heap

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"

	"github.com/google/pprof/profile"

	"temporal-slab/tslab/internal/segment"
)

// The values of a sample, in the order of slab_profile_write.
const (
	AllocObjects = iota
	AllocSpace
	InuseObjects
	InuseSpace
	EscapedObjects // these with the option escape_stacks only
	EscapedSpace
	Values
)

const always = EscapedObjects // so many values has each profile

// ValueNames are pprof's for them.
var ValueNames = [Values]string{"alloc_objects", "alloc_space", "inuse_objects", "inuse_space", "escaped_objects", "escaped_space"}

// Has says whether a profile has a value.
func Has(p *profile.Profile, value int) bool { return value < len(p.SampleType) }

// MaxBytes is more than any of these profiles has: the library follows 32768 objects and 4096 stacks of 32 callers.
const MaxBytes = 64 << 20

// weight is how many objects a sampled one stands for.
func weight(bytes, period uint64) float64 {
	if period == 1 { // each
		return 1
	}
	return 1 / -math.Expm1(-float64(bytes)/float64(period))
}

// carry makes whole numbers of fractions; what is cut off one goes to the next.
type carry float64

func (c *carry) whole(v float64) int64 {
	*c += carry(v)
	n := int64(*c)
	*c -= carry(n)
	return n
}

// Of makes the profile of one allocator, or of several, whose samples have a label 'allocator'.
func Of(list ...*segment.Profile) (*profile.Profile, error) {
	var parts []*profile.Profile
	values := always
	for _, raw := range list {
		if raw.Escapes {
			values = Values
		}
	}
	for _, raw := range list {
		parts = append(parts, of(raw, values))
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return profile.Merge(parts)
}

func of(raw *segment.Profile, values int) *profile.Profile {
	p := &profile.Profile{DefaultSampleType: ValueNames[InuseSpace], PeriodType: &profile.ValueType{Type: "space", Unit: "bytes"}, Period: int64(raw.Period)}
	for i, name := range ValueNames[:values] {
		p.SampleType = append(p.SampleType, &profile.ValueType{Type: name, Unit: []string{"count", "bytes"}[i%2]})
	}
	for _, c := range []struct {
		n    uint64
		text string
	}{{raw.Samples, "samples since the allocator was made"}, {raw.NoStack, "samples lost: more stacks than the table holds"},
		{raw.NotFollowed, "samples not followed: more live ones than the table holds"}} {
		if c.n != 0 {
			p.Comments = append(p.Comments, fmt.Sprintf("%d %s", c.n, c.text))
		}
	}
	for i, m := range raw.Mappings {
		p.Mapping = append(p.Mapping, &profile.Mapping{ID: uint64(i + 1), Start: m.Low, Limit: m.High, Offset: m.Offset, File: m.Path})
	}
	var owed [Values]carry
	stacks, known := make([][]*profile.Location, len(raw.Stacks)), map[uint64]*profile.Location{}
	for i, s := range raw.Stacks {
		for _, frame := range s.Frames {
			stacks[i] = append(stacks[i], locate(p, known, frame-1)) // of a return address: in the call
		}
		sample(p, stacks[i], s, []int64{owed[0].whole(s.Objects), owed[1].whole(s.Bytes), 0, 0,
			owed[EscapedObjects].whole(s.EscapedObjects), owed[EscapedSpace].whole(s.EscapedBytes)}[:values])
	}
	for _, l := range raw.Live {
		w := weight(l.Bytes, raw.Period)
		s := sample(p, stacks[l.Stack], raw.Stacks[l.Stack], []int64{0, 0, owed[2].whole(w), owed[3].whole(w * float64(l.Bytes)), 0, 0}[:values])
		s.NumLabel = map[string][]int64{"bytes": {int64(l.Bytes)}, "class": {int64(l.Class)}, "era": {int64(l.Era)}}
		s.NumUnit = map[string][]string{"bytes": {"bytes"}}
		if l.Escaped {
			s.Label["phase"] = []string{"ended"}
		}
	}
	for _, s := range p.Sample {
		if raw.Named {
			s.Label["allocator"] = []string{strconv.Itoa(raw.Allocator)}
		}
	}
	return p
}

func sample(p *profile.Profile, stack []*profile.Location, of segment.Stack, values []int64) *profile.Sample {
	s := &profile.Sample{Location: stack, Value: values, Label: map[string][]string{"label": {of.Label}}}
	if of.Maker != "" {
		s.Label["maker"] = []string{of.Maker}
	}
	p.Sample = append(p.Sample, s)
	return s
}

func locate(p *profile.Profile, known map[uint64]*profile.Location, address uint64) *profile.Location {
	l := known[address]
	if l == nil {
		l = &profile.Location{ID: uint64(len(p.Location) + 1), Address: address}
		// They are in order, as the kernel lists them.
		n := sort.Search(len(p.Mapping), func(k int) bool { return p.Mapping[k].Start > address })
		if n != 0 && address < p.Mapping[n-1].Limit {
			l.Mapping = p.Mapping[n-1]
		}
		known[address] = l
		p.Location = append(p.Location, l)
	}
	return l
}

// Parse reads a profile that slab_profile_write or 'tslab profile -o' wrote.
func Parse(r io.Reader) (*profile.Profile, error) { return parseUpTo(r, MaxBytes) }

func parseUpTo(r io.Reader, most int64) (*profile.Profile, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && len(b) > 1 && b[0] == 0x1f && b[1] == 0x8b {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(b)); err == nil {
			b, err = io.ReadAll(io.LimitReader(z, most+1))
		}
	}
	switch {
	case err != nil:
		return nil, err
	case int64(len(b)) > most:
		return nil, fmt.Errorf("has more than %d MiB, the limit for a heap profile", most>>20)
	case len(b) == 0:
		return nil, errors.New("is empty")
	}
	p, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("is not a profile for pprof: %w", err)
	}
	return p, check(p)
}

// parse tells a fault in the decoder, which nothing here may trust, as an error.
func parse(b []byte) (p *profile.Profile, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			p, err = nil, fmt.Errorf("damaged (%v)", fault)
		}
	}()
	if p, err = profile.ParseUncompressed(b); err == nil {
		err = p.CheckValid()
	}
	return p, err
}

func check(p *profile.Profile) error {
	if n := len(p.SampleType); n != Values && n != always {
		return errors.New("is another kind of profile, not a heap profile of temporal-slab")
	}
	for i, t := range p.SampleType {
		if t.Type != ValueNames[i] {
			return errors.New("is another kind of profile, not a heap profile of temporal-slab")
		}
	}
	for _, s := range p.Sample {
		for _, v := range s.Value {
			if v < 0 || v > 1<<53 {
				return fmt.Errorf("is damaged: a sample of %d", v)
			}
		}
	}
	return nil
}
