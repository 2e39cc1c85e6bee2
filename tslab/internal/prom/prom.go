// Package prom makes Prometheus series of a snapshot, the same that slab_stats_prometheus writes in the program:
//
//	CLASS, LABEL  one series a row
//	EPOCH         one series a ring id, of the incarnation the id names now
//	PHASE         rows are added up by label id (PEAK: the largest counts)
//	the others    one row, no labels
//
// so the number of series is bounded by classes, ring ids and labels, never by phases. Labels that look alike because
// they were not UTF-8 have their id behind them. What a snapshot does not tell makes no series.
package prom

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
)

// Collector shows one snapshot to a registry.
type Collector struct{ Snap *snapshot.Snapshot }

// Describe says nothing: which series there are depends on the snapshot.
func (c Collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends every series.
func (c Collector) Collect(ch chan<- prometheus.Metric) {
	for _, snap := range c.Snap.Each() {
		p := &page{snap: snap, ch: ch, labels: map[uint64]string{}}
		if snap.Named {
			p.allocator = prometheus.Labels{"allocator": strconv.FormatUint(snap.Allocator(), 10)}
		}
		p.index()
		p.all()
	}
}

func (p *page) all() {
	all := metrics.All()
	for i, m := range all {
		if m.Family == "" || m.Kind == metrics.Sum || m.Type == metrics.ByLabel {
			continue
		}
		var sum *metrics.Metric // stands above its histogram
		if m.Kind == metrics.Histogram && i > 0 && all[i-1].Kind == metrics.Sum && all[i-1].Family == m.Family {
			sum = all[i-1]
		}
		p.family(m, sum)
	}
}

type page struct {
	snap      *snapshot.Snapshot
	allocator prometheus.Labels // among several
	ch        chan<- prometheus.Metric
	labels    map[uint64]string // by id, no two the same
	last      uint64            // highest id: what has no label of its own counts there
	newest    []*snapshot.Row   // of each ring id
}

func (p *page) index() {
	for _, l := range p.snap.Rows(metrics.Label) {
		id, text := l.U("label_id"), l.S("label")
		if strings.ContainsRune(text, '\uFFFD') || text == restLabel && !p.snap.IsRest(l) {
			text += " #" + strconv.FormatUint(id, 10)
		}
		p.labels[id] = text
		p.last = max(p.last, id)
	}
	at := map[uint64]int{}
	for _, e := range p.snap.Rows(metrics.Epoch) {
		id := e.U("epoch_id")
		if id >= metrics.RingMax {
			continue
		}
		if k, ok := at[id]; !ok {
			at[id] = len(p.newest)
			p.newest = append(p.newest, e)
		} else if p.newest[k].U("epoch_era") <= e.U("epoch_era") {
			p.newest[k] = e
		}
	}
}

func (p *page) label(id uint64) string {
	return p.labels[p.shown(id)]
}

// shown is the id under which a label is shown: the last, the rest or "(other)", for one that has no row.
func (p *page) shown(id uint64) uint64 {
	if _, ok := p.labels[id]; ok {
		return id
	}
	return p.last
}

// family sends the series of one line of the table.
func (p *page) family(m, sum *metrics.Metric) {
	rows := p.snap.Rows(m.Section)
	switch m.Section {
	case metrics.Phase:
		p.phases(m)
		return
	case metrics.Epoch:
		rows = p.newest
	}
	for _, r := range rows {
		if !r.Has(m) || p.goesBack(m, r) {
			continue
		}
		names, values := p.rowLabels(m, r)
		desc := prometheus.NewDesc(metrics.Prefix+m.Family, metrics.FamilyHelp(m), names, p.allocator)
		if m.Kind == metrics.Histogram {
			p.histogram(desc, m, sum, r, values)
			continue
		}
		p.send(desc, m, InUnit(m, r.Float(m)), values)
	}
}

func (p *page) rowLabels(m *metrics.Metric, r *snapshot.Row) (names, values []string) {
	add := func(name, value string) { names, values = append(names, name), append(values, value) }
	switch m.Section {
	case metrics.Class:
		add("class", strconv.FormatUint(r.U("class_index"), 10))
		add("object_size", strconv.FormatUint(r.U("object_size"), 10))
	case metrics.Epoch:
		add("epoch", strconv.FormatUint(r.U("epoch_id"), 10))
		add("state", snapshot.StateName(r.U("state")))
		add("label", p.label(r.U("label_id")))
	case metrics.Label:
		add("label", p.label(r.U("label_id")))
	}
	if m.Fixed[0] != "" {
		add(m.Fixed[0], m.Fixed[1])
	}
	if m.Kind == metrics.Info {
		add(m.Key, r.Text(m))
	}
	return
}

// InUnit is a value in the unit that Prometheus wants.
func InUnit(m *metrics.Metric, v float64) float64 {
	switch m.Unit {
	case metrics.Nanoseconds:
		return v / 1e9
	case metrics.Percent:
		return v / 100
	}
	return v
}

func (p *page) send(desc *prometheus.Desc, m *metrics.Metric, v float64, labels []string) {
	kind := prometheus.GaugeValue
	switch {
	case m.Kind == metrics.Counter:
		kind = prometheus.CounterValue
	case m.Kind == metrics.Info:
		v = 1
	case strings.HasSuffix(m.Family, "_count"): // kept for histograms; a name that users know goes without a type
		kind = prometheus.UntypedValue
	}
	metric, err := prometheus.NewConstMetric(desc, kind, v, labels...)
	p.put(desc, metric, err)
}

func (p *page) put(desc *prometheus.Desc, metric prometheus.Metric, err error) {
	if err != nil {
		metric = prometheus.NewInvalidMetric(desc, fmt.Errorf("no series can be made of this: %w", err))
	}
	p.ch <- metric
}

// goesBack says whether a series would fall where it may only rise: labels come and go between the rest and rows of their
// own.
func (p *page) goesBack(m *metrics.Metric, r *snapshot.Row) bool {
	return (m.Kind == metrics.Counter || m.Kind == metrics.Histogram) && p.snap.IsRest(r)
}

// restLabel is the label of the row of the rest, and may be that of a program.
const restLabel = "(rest)"

// middleSum is what the values of a histogram add up to if each is in the middle of its bucket.
func middleSum(m *metrics.Metric, a []uint64) float64 {
	sum, bottom := 0.0, 0.0
	for i, n := range a {
		middle := bottom // of the last, which has no top
		if i < len(a)-1 {
			top := float64(m.BucketTop(i))
			middle, bottom = (bottom+top)/2, top+1
		}
		if m.Type == metrics.Doubling {
			middle = 1.5 * float64(uint64(1)<<i)
		}
		sum += InUnit(m, float64(n)*middle)
	}
	return sum
}

// histogram: buckets of a Doubling array go by fours, for there is one for each label. An empty one is left out. Where
// nobody has added the values up, the sum is what the buckets make of them.
func (p *page) histogram(desc *prometheus.Desc, m, sum *metrics.Metric, r *snapshot.Row, labels []string) {
	a := r.Array(m)
	buckets := map[float64]uint64{}
	count := uint64(0)
	for i, n := range a {
		count = snapshot.Add(count, n)
		if i < len(a)-1 && (m.Type == metrics.Latency || i%2 == 1) {
			buckets[InUnit(m, float64(m.BucketTop(i)))] = count
		}
	}
	if count == 0 {
		return
	}
	total := middleSum(m, a)
	if sum != nil && r.Has(sum) {
		total = InUnit(sum, r.Float(sum))
	}
	metric, err := prometheus.NewConstHistogram(desc, count, total, buckets, labels...)
	p.put(desc, metric, err)
}

func (p *page) phases(m *metrics.Metric) {
	sums := map[uint64]uint64{}
	var order []uint64
	for _, r := range p.snap.Rows(metrics.Phase) {
		if !r.Has(m) {
			continue
		}
		id, v := p.shown(r.U("label_id")), r.Uint(m)
		old, seen := sums[id]
		if !seen {
			order = append(order, id)
		}
		if m.Kind == metrics.Peak {
			sums[id] = max(old, v)
		} else {
			sums[id] = snapshot.Add(old, v)
		}
	}
	desc := prometheus.NewDesc(metrics.Prefix+m.Family, metrics.FamilyHelp(m), []string{"label"}, p.allocator)
	for _, id := range order {
		p.send(desc, m, InUnit(m, float64(sums[id])), []string{p.label(id)})
	}
}
