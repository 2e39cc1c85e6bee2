package snapshot

// The JSON document of slab_stats_json, both ways. Members that the table does not know are skipped, so a newer
// library of the same schema version can be read; a row may lack members. What makes a document of ours is its
// schema_version and every section.

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"temporal-slab/tslab/internal/metrics"
)

// Rows that a list may have: the library has 2^18 incarnations and 4,096 labels at most.
var maxRows = map[metrics.Section]int{metrics.Class: 1 << 10, metrics.Label: 1 << 14, metrics.Epoch: 1 << 18, metrics.Phase: 1 << 18, metrics.Close: 1 << 10}

// Reader reads one document after another.
type Reader struct {
	s *scanner
}

// NewReader reads documents of at most MaxBytes each.
func NewReader(r io.Reader) *Reader { return Within(r, MaxBytes) }

// Within reads documents of at most so many bytes each.
func Within(r io.Reader, limit int64) *Reader { return &Reader{newScanner(r, limit)} }

// Next is the next document; io.EOF when there is none.
func (r *Reader) Next() (*Snapshot, error) {
	if r.s.at != 0 {
		end, err := r.s.rest()
		if err != nil {
			return nil, err
		}
		if end {
			return nil, io.EOF
		}
	}
	r.s.start, r.s.depth = r.s.at, 0
	return decode(r.s)
}

// Only is the document of a reader that has no other.
func (r *Reader) Only() (*Snapshot, error) {
	s, err := r.Next()
	if err != nil {
		return nil, err
	}
	end, err := r.s.rest()
	if err == nil && !end {
		err = r.s.fail("something follows the document")
	}
	return s, err
}

// Parse reads a whole document.
func Parse(r io.Reader) (*Snapshot, error) { return NewReader(r).Only() }

type decoder struct {
	*scanner
	out   *Snapshot
	seen  [metrics.Sections]bool
	wrong error // what the document says wrongly though it is JSON; told when the version is ours
	parts []*Snapshot
	inner bool // of one of the parts
}

const maxAllocators = 1 << 10

func decode(s *scanner) (*Snapshot, error) {
	if c, err := s.peek(); err != nil {
		return nil, err
	} else if c != '{' {
		return nil, s.fail("statistics are a JSON object, and here is '%s'", printable(c))
	}
	d := &decoder{scanner: s, out: New()}
	if err := d.whole(); err != nil {
		return nil, err
	}
	if len(d.parts) > 1 {
		return Together(d.parts), nil
	}
	return d.out, nil
}

// whole reads a document and says whether it is one of ours.
func (d *decoder) whole() error {
	if err := d.object(d.member); err != nil {
		return err
	}
	version := metrics.Of(metrics.Global).Find("schema_version")
	if got := d.out.Global().Uint(version); d.out.Global().Has(version) && got != metrics.Version {
		return fmt.Errorf("schema_version %d: this tslab reads version %d", got, metrics.Version)
	}
	if d.wrong != nil {
		return d.wrong
	}
	if !d.out.Global().Has(version) {
		return errors.New("no schema_version: these are no statistics of temporal-slab")
	}
	for k, seen := range d.seen {
		if info := metrics.Of(metrics.Section(k)); info.Form != metrics.Top && !seen {
			return fmt.Errorf("no member %s: the statistics are not complete", info.Key)
		}
	}
	return nil
}

func (d *decoder) complain(format string, args ...any) {
	if d.wrong == nil {
		d.wrong = d.fail(format, args...)
	}
}

// member reads a member of the document: one of a TOP section, or a section.
func (d *decoder) member(key string) error {
	for k := range metrics.Sections {
		info := metrics.Of(k)
		if info.Form == metrics.Top {
			if m := info.Find(key); m != nil {
				return d.value(d.out.One(k), m, key)
			}
		} else if info.Key == key {
			if d.seen[k] {
				d.complain("%s is there twice", key)
				return d.skip()
			}
			d.seen[k] = true
			return d.section(info)
		}
	}
	if key == byAllocator && !d.inner {
		return d.allocators()
	}
	return d.skip()
}

// byAllocator is the member of a document of several allocators that has the document of each.
const byAllocator = "by_allocator"

func (d *decoder) allocators() error {
	return d.array(func(i int) error {
		if i >= maxAllocators {
			return fmt.Errorf("%s has more than %d documents", byAllocator, maxAllocators)
		}
		part := &decoder{scanner: d.scanner, out: New(), inner: true}
		err := part.whole()
		part.out.Named = true
		d.parts = append(d.parts, part.out)
		return err
	})
}

func (d *decoder) section(info *metrics.SectionInfo) error {
	if info.Form == metrics.Object {
		return d.row(d.out.One(info.Section), info, info.Key)
	}
	c, err := d.peek()
	if err != nil {
		return err
	}
	if c != '[' {
		d.complain("%s is no list", info.Key)
		return d.skip()
	}
	return d.array(func(i int) error {
		if i >= maxRows[info.Section] {
			return fmt.Errorf("%s has more than %d rows", info.Key, maxRows[info.Section])
		}
		r := NewRow(info.Section)
		d.out.Append(r)
		return d.row(r, info, info.Key+"["+strconv.Itoa(i)+"]")
	})
}

func (d *decoder) row(r *Row, info *metrics.SectionInfo, where string) error {
	c, err := d.peek()
	if err != nil {
		return err
	}
	if c != '{' {
		d.complain("%s is no object", where)
		return d.skip()
	}
	return d.object(func(key string) error {
		if m := info.Find(key); m != nil {
			return d.value(r, m, where+"."+key)
		}
		return d.skip()
	})
}

// value reads the value of a metric. A value of another type is skipped and complained of.
func (d *decoder) value(r *Row, m *metrics.Metric, where string) error {
	if r.Has(m) {
		d.complain("%s is there twice", where)
		return d.skip()
	}
	c, err := d.peek()
	if err != nil {
		return err
	}
	isNumber := c == '-' || (c >= '0' && c <= '9')
	switch {
	case m.IsArray() && c == '[':
		return d.counts(r, m, where)
	case m.Type == metrics.String && c == '"':
		t, err := d.text()
		r.SetText(m, t)
		return err
	case m.Type == metrics.State && c == '"':
		return d.state(r, m, where)
	case m.Type == metrics.Flag && (c == 't' || c == 'f'):
		w, err := d.word()
		if w == "true" {
			r.SetUint(m, 1)
		} else {
			r.SetUint(m, 0)
		}
		return err
	case (m.Type == metrics.U32 || m.Type == metrics.U64) && isNumber:
		v, err := d.integer(m.Type, where)
		r.SetUint(m, v)
		return err
	case m.Type == metrics.F64 && isNumber:
		return d.float(r, m, where)
	}
	d.complain("%s is no %s", where, typeWord(m))
	return d.skip()
}

func typeWord(m *metrics.Metric) string {
	switch {
	case m.IsArray():
		return "list of " + strconv.Itoa(m.Entries()) + " counts"
	case m.Type == metrics.String:
		return "text"
	case m.Type == metrics.State:
		return "state (" + strings.Join(metrics.States, " or ") + ")"
	case m.Type == metrics.Flag:
		return "true or false"
	case m.Type == metrics.F64:
		return "number"
	}
	return "whole number"
}

func (d *decoder) state(r *Row, m *metrics.Metric, where string) error {
	t, err := d.text()
	for v, name := range metrics.States {
		if name == t {
			r.SetUint(m, uint64(v))
			return err
		}
	}
	d.complain("%s is no %s", where, typeWord(m))
	return err
}

func (d *decoder) integer(t metrics.Type, where string) (uint64, error) {
	text, err := d.number()
	if err != nil {
		return 0, err
	}
	bits := 64
	if t == metrics.U32 {
		bits = 32
	}
	v, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		d.complain("%s is %s, no whole number of %d bits", where, text, bits)
	}
	return v, nil
}

func (d *decoder) float(r *Row, m *metrics.Metric, where string) error {
	text, err := d.number()
	if err != nil {
		return err
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v, 0) {
		d.complain("%s is %s, which is out of range", where, text)
	} else if v < 0 && m.Unit != metrics.MiB {
		d.complain("%s is %s, and may not be negative", where, text)
	}
	r.SetFloat(m, v)
	return nil
}

func (d *decoder) counts(r *Row, m *metrics.Metric, where string) error {
	a := make([]uint64, m.Entries())
	n := 0
	err := d.array(func(i int) error {
		n++
		c, err := d.peek()
		if err != nil {
			return err
		}
		if i >= len(a) || c < '0' || c > '9' {
			return d.skip()
		}
		a[i], err = d.integer(metrics.U64, where)
		return err
	})
	if n != len(a) {
		d.complain("%s has %d entries instead of %d", where, n, len(a))
	}
	r.SetArray(m, a)
	return err
}

// ---- writing ----

// WriteJSON writes the document as the library does.
func (s *Snapshot) WriteJSON(w io.Writer) error {
	o := bufio.NewWriter(w)
	s.document(o)
	return o.Flush()
}

// document writes that of one allocator, or the sum of several with the document of each behind it.
func (s *Snapshot) document(o *bufio.Writer) {
	comma := "{"
	for k := range metrics.Sections {
		info := metrics.Of(k)
		if info.Form == metrics.Top {
			s.One(k).members(o, &comma, "\n")
			continue
		}
		o.WriteString(comma + Quote(info.Key) + ":")
		comma = ","
		if info.Form == metrics.Object {
			s.row(o, s.One(k))
		} else {
			for i, r := range s.rows[k] {
				o.WriteString([]string{"[\n", ",\n"}[min(i, 1)])
				s.Of(r).row(o, r)
			}
			if len(s.rows[k]) == 0 {
				o.WriteByte('[')
			}
			o.WriteByte(']')
		}
		o.WriteByte('\n')
	}
	for i, p := range s.Parts {
		o.WriteString([]string{`,"` + byAllocator + `":[` + "\n", ",\n"}[min(i, 1)])
		p.document(o)
	}
	if len(s.Parts) != 0 {
		o.WriteString("]\n")
	}
	o.WriteString("}\n")
}

func (s *Snapshot) row(o *bufio.Writer, r *Row) {
	comma := ""
	o.WriteByte('{')
	if name := r.AllocatorName(); name != "" {
		o.WriteString(`"allocator":` + name)
		comma = ","
	}
	r.members(o, &comma, "")
	switch r.Section {
	case metrics.Class:
		r.contention(o, comma)
	case metrics.Registry:
		o.WriteString(comma + `"labels":[`)
		for i, l := range s.rows[metrics.Label] {
			o.WriteString([]string{"\n", ",\n"}[min(i, 1)])
			fmt.Fprintf(o, `{"id":%d,"label":%s}`, l.U("label_id"), Quote(l.S("label")))
		}
		o.WriteByte(']')
	}
	o.WriteByte('}')
}

// members writes what was told.
func (r *Row) members(o *bufio.Writer, comma *string, end string) {
	for _, m := range metrics.Of(r.Section).Metrics {
		if !r.Has(m) {
			continue
		}
		o.WriteString(*comma + Quote(m.Key) + ":" + r.JSON(m) + end)
		*comma = ","
	}
}

// JSON is a value as JSON has it.
func (r *Row) JSON(m *metrics.Metric) string {
	switch {
	case m.IsArray():
		words := make([]string, len(r.Array(m)))
		for i, v := range r.Array(m) {
			words[i] = strconv.FormatUint(v, 10)
		}
		return "[" + strings.Join(words, ",") + "]"
	case m.Type == metrics.String:
		return Quote(r.Text(m))
	case m.Type == metrics.State:
		return Quote(StateName(r.Uint(m)))
	case m.Type == metrics.Flag:
		return strconv.FormatBool(r.Uint(m) != 0)
	case m.Type == metrics.F64:
		return Number(r.Float(m))
	}
	return strconv.FormatUint(r.Uint(m), 10)
}

// contention repeats the arrays by label without their zeros.
func (r *Row) contention(o *bufio.Writer, comma string) {
	o.WriteString(comma + `"contention_by_label":{`)
	outer := ""
	for _, m := range metrics.Of(r.Section).Metrics {
		if m.Type != metrics.ByLabel || !r.Has(m) {
			continue
		}
		o.WriteString(outer + Quote(strings.TrimSuffix(m.Key, "_by_label")) + ":{")
		outer = ","
		inner := ""
		for i, v := range r.Array(m) {
			if v != 0 {
				fmt.Fprintf(o, `%s"%d":%d`, inner, i, v)
				inner = ","
			}
		}
		o.WriteByte('}')
	}
	o.WriteByte('}')
}

// Number is a float as JSON has it; what is not finite is 0.
func Number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// Quote is a text as JSON has it.
func Quote(t string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range t {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < 0x20 || c == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
