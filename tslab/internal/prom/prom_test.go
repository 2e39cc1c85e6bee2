package prom_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/prom"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/testdata"
)

// series are name, labels and value of every sample of a text.
func series(t *testing.T, text []byte) (map[string]float64, map[string]string) {
	t.Helper()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	values, heads := map[string]float64{}, map[string]string{}
	for name, f := range families {
		heads[name] = f.GetType().String() + " " + f.GetHelp()
		for _, m := range f.Metric {
			id := name + labels(m)
			if h := m.GetHistogram(); h != nil {
				values[id+" count"], values[id+" sum"] = float64(h.GetSampleCount()), h.GetSampleSum()
				for _, b := range h.Bucket {
					values[fmt.Sprintf("%s le %.10g", id, b.GetUpperBound())] = float64(b.GetCumulativeCount())
				}
				continue
			}
			values[id] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return values, heads
}

func labels(m *dto.Metric) string {
	var words []string
	for _, l := range m.Label {
		words = append(words, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	slices.Sort(words)
	return "{" + strings.Join(words, ",") + "}"
}

// What is exported of a document is what the library itself exports: the reports of tests/reports/print.c in both
// forms, among them one with numbers at their limits and one of an allocator at work. And the document is read and
// written without loss.
func TestAsTheLibrary(t *testing.T) {
	dir := os.Getenv("TSLAB_REPORTS")
	if dir == "" {
		t.Skip("skipped: TSLAB_REPORTS names no folder with the library's reports (tests/cli/tslab.sh makes them)")
	}
	for _, name := range []string{"live", "full", "extreme", "empty"} {
		doc, err := os.ReadFile(filepath.Join(dir, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(dir, name+".prometheus"))
		if err != nil {
			t.Fatal(err)
		}
		snap, err := snapshot.Parse(bytes.NewReader(doc))
		if err != nil {
			t.Fatal(err)
		}
		var text, again bytes.Buffer
		if err := prom.Write(&text, snap, false); err != nil {
			t.Fatal(err)
		}
		compare(t, name, text.Bytes(), want)
		if err := snap.WriteJSON(&again); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(numbers(t, again.Bytes()), numbers(t, doc)) {
			t.Errorf("%s: the document is not the same when it is written again", name)
		}
	}
}

func compare(t *testing.T, name string, got, want []byte) {
	t.Helper()
	values, heads := series(t, got)
	theirs, theirHeads := series(t, want)
	if len(theirs) < 50 {
		t.Errorf("%s: the library has %d series only", name, len(theirs))
	}
	for _, id := range slices.Sorted(maps.Keys(theirs)) {
		v, ok := values[id]
		unknownSum := strings.HasSuffix(id, " sum") && math.IsNaN(v) && theirs[id] == 0 // told by nobody
		if !ok || (math.Abs(v-theirs[id]) > 1e-12*math.Abs(theirs[id]) || math.IsNaN(v)) && !unknownSum {
			t.Errorf("%s: %s is %v, in the library %v", name, id, v, theirs[id])
		}
		delete(values, id)
	}
	for id := range values {
		t.Errorf("%s: the library has no %s", name, id)
	}
	for family, head := range heads { // families without series are in the library's text only
		if theirHeads[family] != head {
			t.Errorf("%s: %s is %q, in the library %q", name, family, head, theirHeads[family])
		}
	}
}

func numbers(t *testing.T, doc []byte) map[string]any {
	t.Helper()
	var v map[string]any
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return normal(v).(map[string]any)
}

// normal writes numbers that are no whole ones in one way: 0.50 and 5e-1 are the same.
func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = normal(v[k])
		}
	case []any:
		for k := range v {
			v[k] = normal(v[k])
		}
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			f, _ := v.Float64()
			return snapshot.Number(f)
		}
	}
	return v
}

func TestOpenMetrics(t *testing.T) {
	var b bytes.Buffer
	if err := prom.Write(&b, testdata.Snapshot(), true); err != nil || !strings.HasSuffix(b.String(), "# EOF\n") {
		t.Errorf("%v, ends with %q", err, b.String()[max(0, b.Len()-40):])
	}
}

// What a strict parser of OpenMetrics refuses: a sum that is not a number, a count without a sum. Both formats.
func TestHistogramsHaveSums(t *testing.T) {
	for _, open := range []bool{false, true} {
		var b bytes.Buffer
		if err := prom.Write(&b, testdata.Snapshot(), open); err != nil {
			t.Fatal(err)
		}
		counts := 0
		for line := range strings.Lines(b.String()) {
			if strings.Contains(line, "NaN") {
				t.Errorf("not a number: %s", line)
			}
			if name, rest, ok := strings.Cut(line, "_count{"); ok && strings.Contains(name, "label_") {
				labels, _, _ := strings.Cut(rest, "} ")
				counts++
				if !strings.Contains(b.String(), name+"_sum{"+labels+"} ") {
					t.Errorf("a count without a sum: %s", line)
				}
			}
		}
		if counts == 0 {
			t.Error("no histogram")
		}
	}
}

// Series of several allocators carry which of them it is, and those of the rest of the labels never fall.
func TestSeveralAllocators(t *testing.T) {
	var parts []*snapshot.Snapshot
	for n := range uint64(2) {
		s := testdata.Snapshot()
		s.Named = true
		s.Document().SetUint(metrics.Of(metrics.Document).Find("allocator"), n)
		s.Document().SetUint(metrics.Of(metrics.Document).Find("labels_left_out"), 7)
		rest := snapshot.NewRow(metrics.Label)
		set := func(key string, v uint64) { rest.SetUint(metrics.Of(metrics.Label).Find(key), v) }
		rest.SetText(metrics.Of(metrics.Label).Find("label"), "(rest)")
		set("label_id", s.One(metrics.Registry).U("count"))
		set("live_bytes", 4711)
		set("objects_allocated", 4711)
		s.Append(rest)
		parts = append(parts, s)
	}
	var b bytes.Buffer
	if err := prom.Write(&b, snapshot.Together(parts), true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`temporal_slab_live_bytes{allocator="0"} `, `temporal_slab_live_bytes{allocator="1"} `,
		`temporal_slab_label_live_bytes{allocator="1",label="(rest)"} 4711`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no series %s", want)
		}
	}
	if strings.Contains(b.String(), `label_objects_allocated_total{allocator="1",label="(rest)"}`) {
		t.Error("a counter of the rest")
	}
}
