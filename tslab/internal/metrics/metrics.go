// Package metrics is the table of every number the library reports, read from metrics.tsv, which scripts/metrics.sh
// writes from src/stats/metrics.def. Whatever reads, shows or exports a snapshot walks this table, so a new metric of
// the library needs no line here. Where a row keeps a value depends on its type: see Metric.Slot.
package metrics

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed metrics.tsv
var table string

// Schema is share/stats.schema.json.
//
//go:embed stats.schema.json
var Schema []byte

// Section is a part of the document, in the order of the document.
type Section uint8

// The sections that code names; the table has to have these and no others.
const (
	Document Section = iota
	Global
	Registry
	Class
	Epoch
	Sampling
	Refusal
	Phase
	Label
	Close
	Sections
)

var sectionNames = [Sections]string{"DOCUMENT", "GLOBAL", "REGISTRY", "CLASS", "EPOCH", "SAMPLING", "REFUSAL", "PHASE", "LABEL", "CLOSE"}

// SectionNamed is the section with a name of the table.
func SectionNamed(name string) (Section, bool) {
	i, err := index(sectionNames[:], name)
	return Section(i), err == nil
}

// Form says how a section lies in the document.
type Form uint8

const (
	Top    Form = iota // members of the document itself
	Object             // one object
	Array              // a list of objects
)

// Type is that of a value.
type Type uint8

const (
	U32 Type = iota
	U64
	F64
	Flag
	String
	State
	ByLabel
	Doubling
	Latency
	List
)

// Kind is how a value moves.
type Kind uint8

const (
	Counter Kind = iota
	Gauge
	Peak
	Histogram
	Sum
	Info
	Identity
	Copy
)

// Unit is that of the document.
type Unit uint8

const (
	Count Unit = iota
	Bytes
	Nanoseconds
	Seconds
	Percent
	Ratio
	MiB
	ID
	Text
)

var (
	forms = []string{"TOP", "OBJECT", "ARRAY"}
	types = []string{"U32", "U64", "F64", "FLAG", "STRING", "STATE", "BY_LABEL", "DOUBLING", "LATENCY", "LIST"}
	kinds = []string{"COUNTER", "GAUGE", "PEAK", "HISTOGRAM", "SUM", "INFO", "IDENTITY", "COPY"}
	units = []string{"COUNT", "BYTES", "NS", "SECONDS", "PERCENT", "RATIO", "MIB", "ID", "TEXT"}
)

// MostColumns is how many metrics a section may have.
const MostColumns = 128

// What the table says besides: the prefix of all families, the ids of a ring (larger ones are domains' own), and the
// names of the values of type State.
var (
	Prefix  string
	RingMax uint64
	States  []string
)

// array is what the table says of a type that is a list of counts.
type array struct {
	entries int
	tops    []uint64 // of a histogram: the largest value that each bucket counts; the last has no such bound
}

var arrays = map[Type]array{}

// Metric is one line of the table.
type Metric struct {
	Section  Section
	Key      string
	Type     Type
	Kind     Kind
	Unit     Unit
	Family   string // Prometheus name without prefix and fixed label; "" when it makes no series
	Fixed    [2]string
	Help     string
	Question string
	Column   int // among all metrics of the section
	Slot     int // among those of the section that are numbers, texts or arrays
}

// IsArray says whether a value is a list of counts; Entries are then so many.
func (m *Metric) IsArray() bool { return m.Type >= ByLabel }

// IsNumber says whether a value is one number.
func (m *Metric) IsNumber() bool { return m.Type != String && !m.IsArray() }

// Entries is the length of an array.
func (m *Metric) Entries() int { return arrays[m.Type].entries }

// BucketTop is the largest value that bucket i of a histogram counts; its last bucket has no such bound.
func (m *Metric) BucketTop(i int) uint64 { return arrays[m.Type].tops[i] }

// SectionInfo is what the table says of a section, and its metrics in order.
type SectionInfo struct {
	Section                Section
	Key, Title             string
	Form                   Form
	Metrics                []*Metric
	Numbers, Texts, Arrays int // slots
	byKey                  map[string]*Metric
}

// Find is the metric with a key, nil when there is none.
func (s *SectionInfo) Find(key string) *Metric { return s.byKey[key] }

var (
	infos       [Sections]SectionInfo
	all         []*Metric
	familyHelps = map[string]string{}
	// Version is the schema_version that is understood.
	Version uint64
)

// Of is the description of a section.
func Of(s Section) *SectionInfo { return &infos[s] }

// All are the metrics in the order of the document.
func All() []*Metric { return all }

// FamilyHelp is the help text of the family of m.
func FamilyHelp(m *Metric) string {
	if h, ok := familyHelps[m.Family]; ok {
		return h
	}
	return m.Help
}

func init() {
	if err := load(table); err != nil {
		panic("metrics.tsv: " + err.Error())
	}
}

func index(words []string, word string) (int, error) {
	for i, w := range words {
		if w == word {
			return i, nil
		}
	}
	return 0, fmt.Errorf("no %q among %v", word, words)
}

func load(text string) error {
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		var err error
		switch {
		case strings.HasPrefix(line, "#"):
		case f[0] == "version" && len(f) == 2:
			Version, err = strconv.ParseUint(f[1], 10, 32)
		case f[0] == "prefix" && len(f) == 2:
			Prefix = f[1]
		case f[0] == "ring" && len(f) == 2:
			RingMax, err = strconv.ParseUint(f[1], 10, 32)
		case f[0] == "states":
			States = f[1:]
		case f[0] == "array" && len(f) >= 3:
			err = loadArray(f[1:])
		case f[0] == "section" && len(f) == 5:
			err = loadSection(f[1:])
		case f[0] == "family" && len(f) == 3:
			familyHelps[f[1]] = f[2]
		case f[0] == "metric" && len(f) == 9:
			err = loadMetric(f[1:])
		default:
			err = fmt.Errorf("unknown line %q", line)
		}
		if err != nil {
			return err
		}
	}
	for s := range infos {
		if len(infos[s].Metrics) == 0 || len(infos[s].Metrics) > MostColumns {
			return fmt.Errorf("section %s has %d metrics", sectionNames[s], len(infos[s].Metrics))
		}
	}
	return nil
}

func loadArray(f []string) error {
	t, err := index(types, f[0])
	if err != nil {
		return err
	}
	a := array{}
	if a.entries, err = strconv.Atoi(f[1]); err != nil {
		return err
	}
	for _, word := range strings.Fields(strings.Join(f[2:], " ")) {
		top, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return err
		}
		a.tops = append(a.tops, top)
	}
	arrays[Type(t)] = a
	return nil
}

func loadSection(f []string) error {
	s, err := index(sectionNames[:], f[0])
	if err != nil {
		return err
	}
	form, err := index(forms, f[2])
	infos[s] = SectionInfo{Section: Section(s), Key: f[1], Form: Form(form), Title: f[3], byKey: map[string]*Metric{}}
	return err
}

func loadMetric(f []string) error {
	s, err := index(sectionNames[:], f[0])
	if err != nil {
		return err
	}
	info := &infos[s]
	m := &Metric{Section: Section(s), Key: f[1], Help: f[6], Question: f[7], Column: len(info.Metrics)}
	t, err1 := index(types, f[2])
	k, err2 := index(kinds, f[3])
	u, err3 := index(units, f[4])
	for _, e := range []error{err1, err2, err3} {
		if e != nil {
			return fmt.Errorf("%s: %w", m.Key, e)
		}
	}
	m.Type, m.Kind, m.Unit = Type(t), Kind(k), Unit(u)
	if f[5] != "-" {
		m.Family = f[5]
	}
	if name, fixed, ok := strings.Cut(m.Family, "{"); ok {
		m.Family = name
		m.Fixed[0], m.Fixed[1], _ = strings.Cut(strings.TrimSuffix(fixed, "}"), "=")
	}
	slots := &info.Numbers
	if m.Type == String {
		slots = &info.Texts
	} else if m.IsArray() {
		slots = &info.Arrays
	}
	m.Slot = *slots
	*slots++
	info.Metrics = append(info.Metrics, m)
	info.byKey[m.Key] = m
	all = append(all, m)
	return nil
}
