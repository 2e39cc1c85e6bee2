package snapshot_test

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/testdata"
)

func parse(t string) (*snapshot.Snapshot, error) { return snapshot.Parse(strings.NewReader(t)) }

func asMap(t *testing.T, doc []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

// What was read is written again, to the last digit.
func TestRoundTrip(t *testing.T) {
	big := testdata.Edit(`"live_bytes":`, `"live_bytes":18446744073709551615,"x":`, `"label":"(unlabeled)"`, `"label":"\u0001\"\\\ud83d\ude00é"`)
	for _, doc := range []string{testdata.Mixed, big} {
		s, err := parse(doc)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := s.WriteJSON(&out); err != nil {
			t.Fatal(err)
		}
		got, want := asMap(t, out.Bytes()), asMap(t, []byte(doc))
		delete(want, "x")
		delete(got, "label_registry") // made of the labels, not of itself
		delete(want, "label_registry")
		for k := range want {
			if !reflect.DeepEqual(got[k], want[k]) {
				t.Errorf("%s is %v, was %v", k, got[k], want[k])
			}
		}
	}
}

func TestMembersThatAreMissingAreAbsent(t *testing.T) {
	s := testdata.Snapshot(`"live_bytes":`, `"formerly_live_bytes":`)
	if s.Global().Tells("live_bytes") || !s.Global().Tells("committed_bytes") {
		t.Error("a member that is not there was told, or one that is was not")
	}
	var out bytes.Buffer
	if s.WriteJSON(&out); asMap(t, out.Bytes())["live_bytes"] != nil {
		t.Error("an absent member was written")
	}
}

// Each is refused with one clear line.
func TestRefused(t *testing.T) {
	deep := strings.Repeat("[", 1<<20)
	for _, c := range []struct{ doc, want string }{
		{"", "nothing there"},
		{"   \n", "breaks off"},
		{"[1]", "JSON object"},
		{"null", "JSON object"},
		{"{}", "no schema_version"},
		{`{"schema_version":3}`, "no member"},
		{testdata.Edit(`"schema_version":3`, `"schema_version":4`), "schema_version 4: this tslab reads version 3"},
		{testdata.Edit(`"schema_version":3`, `"schema_version":4`, `"pid":`, `"pid":"x","y":`), "schema_version 4"},
		{testdata.Edit(`"schema_version":3`, `"schema_version":"3"`), "schema_version is no whole number"},
		{testdata.Edit(`"refusals":`, `"rebuttals":`), "no member refusals"},
		{testdata.Edit(`"pid":`, `"pid":4294967296,"y":`), "no whole number of 32 bits"},
		{testdata.Edit(`"pid":`, `"pid":-1,"y":`), "no whole number"},
		{testdata.Edit(`"pid":`, `"pid":1.5,"y":`), "no whole number"},
		{testdata.Edit(`"live_bytes":`, `"live_bytes":18446744073709551616,"y":`), "no whole number of 64 bits"},
		{testdata.Edit(`"pid":`, `"pid":NaN,"y":`), "where a value was expected"},
		{testdata.Edit(`"pid":`, `"pid":01,"y":`), "'01' is no number"},
		{testdata.Edit(`"age_sec":`, `"age_sec":1e999,"y":`), "out of range"},
		{testdata.Edit(`"age_sec":`, `"age_sec":-1,"y":`), "may not be negative"},
		{testdata.Edit(`"age_sec":`, `"age_sec":`+strings.Repeat("1", 500)+`,"y":`), "a number of more than 128"},
		{testdata.Edit(`"state":"ACTIVE"`, `"state":"OPEN"`), "is no state (ACTIVE or CLOSING)"},
		{testdata.Edit(`"enabled":false`, `"enabled":0`), "is no true or false"},
		{testdata.Edit(`"classes":[`, `"classes":{},"y":[`), "classes is no list"},
		{testdata.Edit(`"classes":[`, `"classes":[7,`), "classes[0] is no object"},
		{testdata.Edit(`"lock_contended_by_label":[0,`, `"lock_contended_by_label":[`), "has 15 entries instead of 16"},
		{testdata.Edit(`"pid":`, `"pid":1,"pid":`), "pid is there twice"},
		{testdata.Edit(`"pid":`, `"y":`+deep+`,"pid":`), "nested deeper than 32"},
		{testdata.Edit(`"pid":`, `"y":"`+strings.Repeat("x", 70000)+`","pid":`), "a text longer than 64 KiB"},
		{testdata.Edit(`"pid":`, "\"y\":\"\n\",\"pid\":"), "control character"},
		{testdata.Edit(`"pid":`, `"y":"\x","pid":`), "unknown escape"},
		{testdata.Edit(`"pid":`, `"y":"\u12G4","pid":`), "not \\uXXXX"},
		{testdata.Mixed + "{}", "something follows the document"},
		{testdata.Mixed[:len(testdata.Mixed)/2], "breaks off"},
	} {
		_, err := parse(c.doc)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: error %v, not of %q", c.doc, err, c.want)
		}
	}
}

// Every place where a document can break off is an error, and none is a panic.
func TestBreaksOffAnywhere(t *testing.T) {
	doc := testdata.Mixed
	for n := 0; n < len(doc)-3; n += 911 {
		if _, err := parse(doc[:n]); err == nil {
			t.Fatalf("the first %d bytes were taken for all", n)
		}
	}
}

// endless is a document that never ends; only its beginning is ever in memory.
type endless struct {
	head  string
	chunk string
	given int64
}

func (e *endless) Read(b []byte) (int, error) {
	if e.head != "" {
		n := copy(b, e.head)
		e.head = e.head[n:]
		return n, nil
	}
	n := copy(b, e.chunk)
	e.given += int64(n)
	return n, nil
}

func TestEndlessInputIsBounded(t *testing.T) {
	const limit = 4 << 20
	for what, e := range map[string]*endless{
		"text":    {head: `{"y":"`, chunk: "xxxxxxxxxxxxxxxx"},
		"members": {head: `{`, chunk: `"y":0,`},
		"phases":  {head: `{"phases":[`, chunk: `{},`},
		"spaces":  {head: ``, chunk: "                "},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := snapshot.Within(e, limit).Only()
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: an endless document was taken", what)
		}
		if e.given > limit+1<<20 {
			t.Errorf("%s: %d bytes were read", what, e.given)
		}
		if held := after.Sys - before.Sys; int64(held) > 256<<20 {
			t.Errorf("%s: %d MiB were taken from the system", what, held>>20)
		}
	}
}

func TestDocumentsInARow(t *testing.T) {
	r := snapshot.NewReader(strings.NewReader(testdata.Mixed + "\n \n" + testdata.Mixed + "\n"))
	for range 2 {
		if s, err := r.Next(); err != nil || s.Global().U("schema_version") != metrics.Version {
			t.Fatal(err)
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("after the last document: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(testdata.Mixed[:2000])
	f.Add(`{"schema_version":3,"label_registry":{},"classes":[],"epochs":[],"slowpath_sampling":{},"refusals":{},"phases":[],"labels":[{}]}`)
	f.Fuzz(func(t *testing.T, doc string) {
		s, err := parse(doc)
		if err != nil {
			return
		}
		var out bytes.Buffer
		s.WriteJSON(&out)
		if _, err := snapshot.Parse(&out); err != nil {
			t.Errorf("what was written cannot be read: %v", err)
		}
	})
}
