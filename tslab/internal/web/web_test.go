package web

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/rates"
	"temporal-slab/tslab/internal/record"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/testdata"
)

// still is a server with one process that is not read: what it shows is the document of package testdata.
func still(t *testing.T, edit func(*snapshot.Snapshot)) *Server {
	t.Helper()
	s := New(Options{LeakSeconds: 60, Stale: time.Minute, Pid: 77})
	snap := testdata.Snapshot()
	if edit != nil {
		edit(snap)
	}
	w := &watcher{pid: 77, command: "server --port 80", replay: true, colours: s.colours, asked: time.Now()}
	w.last = rates.Between(nil, snap)
	w.history.Add(pointOf(w.last, time.UnixMilli(1_000_000), s.colours.of))
	s.watched[77] = w
	t.Cleanup(s.Close)
	return s
}

func ask(t *testing.T, s *Server, path string, accept string) (*http.Response, []byte) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept-Encoding", accept)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	body := w.Body.Bytes()
	if w.Result().Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return w.Result(), body
}

func TestHistoryIsBounded(t *testing.T) {
	var h History
	for n := range 3 * 3600 {
		h.Add(Point{At: int64(n) * 1000, Live: uint64(n)})
	}
	list, last := h.Since(0), int64(3*3600-1)*1000
	if want := 301 + 330; len(list) < want-5 || len(list) > want+5 || h.Len() != len(list) {
		t.Fatalf("%d points are kept, %d expected", len(list), want)
	}
	if first := list[0].At; first < last-coarseKept.Milliseconds() || first > last-coarseKept.Milliseconds()+20_000 {
		t.Errorf("the oldest point is of %d, the latest of %d", first, last)
	}
	for n := 1; n < len(list); n++ {
		step := list[n].At - list[n-1].At
		if step <= 0 || step > 10_000 || list[n-1].At > last-fineKept.Milliseconds() && step != 1000 {
			t.Fatalf("a step of %d ms before %d", step, list[n].At)
		}
	}
	if got := h.Since(last - 3000); len(got) != 3 || got[0].At != last-2000 {
		t.Errorf("%d points since then", len(got))
	}
	if h.Add(Point{At: 5}); h.Since(last) != nil {
		t.Error("a point of the past is taken")
	}
	if c := cap(h.fine); c > 8*int(fineKept/every) {
		t.Errorf("room for %d points", c)
	}
}

func TestPointInJSON(t *testing.T) {
	p := Point{At: 5, Live: 1, Committed: 2, RSS: 3, Limit: 4, Used: 5, Allocated: math.NaN(), CPU: 1.234567, Wait: math.Inf(1),
		Labels: []LabelPoint{{3, 10, 20, 0.5}, {-1, 1, 2, math.NaN()}}}
	b, err := json.Marshal(p)
	if want := `[5,1,2,3,4,5,null,0,0,0,0,1.23,null,0,0,[[3,10,20,0.5],[-1,1,2,null]]]`; err != nil || string(b) != want {
		t.Errorf("%s, %v, not %s", b, err, want)
	}
}

func TestDocument(t *testing.T) {
	s := still(t, nil)
	reply, body := ask(t, s, "/processes/77/now.json", "gzip")
	var d Document
	if err := json.Unmarshal(withoutPoints(t, body), &d); err != nil || reply.StatusCode != 200 {
		t.Fatal(reply.StatusCode, err)
	}
	snap := testdata.Snapshot()
	g := snap.Global()
	if d.Pid != 77 || d.Command != "server --port 80" || d.Now.Live != g.U("live_bytes") || d.Now.Limit.Name != g.S("limit_name") {
		t.Errorf("%+v", d.Now)
	}
	if len(d.Labels) == 0 || len(d.Labels)+d.MoreLabel < len(snap.Rows(metrics.Label)) {
		t.Errorf("%d labels, %d more", len(d.Labels), d.MoreLabel)
	}
	for n := 1; n < len(d.Labels); n++ {
		if d.Labels[n].Committed > d.Labels[n-1].Committed {
			t.Error("labels are out of order")
		}
	}
	named := map[int]string{}
	for _, n := range d.Names {
		named[int(n[0].(float64))] = n[1].(string)
	}
	for _, l := range d.Labels {
		if named[l.ID] != l.Name {
			t.Errorf("label %d is %q and %q", l.ID, l.Name, named[l.ID])
		}
	}
	if d.Verdict.Count != len(d.Verdict.Findings) || len(d.Verdict.Sections) != 8 {
		t.Errorf("%+v", d.Verdict)
	}
	if len(d.Oldest) > pageOldest || len(d.Closes) > pageCloses {
		t.Error("more rows than a page has")
	}
}

// withoutPoints is a document without its points, which are lists.
func withoutPoints(t *testing.T, body []byte) []byte {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatalf("%v in %.300s", err, body)
	}
	if !bytes.HasPrefix(all["points"], []byte("[")) {
		t.Fatal("no points")
	}
	delete(all, "points")
	b, _ := json.Marshal(all)
	return b
}

func TestChosenLabel(t *testing.T) {
	s := still(t, nil)
	_, body := ask(t, s, "/processes/77/now.json?label=POST+/orders", "")
	var d Document
	if err := json.Unmarshal(withoutPoints(t, body), &d); err != nil || d.Chosen == nil || d.Chosen.Name != "POST /orders" {
		t.Fatal(err, d.Chosen)
	}
	for _, p := range d.Chosen.Phases {
		if p.Name != "POST /orders" {
			t.Errorf("a phase of %s", p.Name)
		}
	}
	_, body = ask(t, s, "/processes/77/now.json?label=nobody", "")
	d.Chosen = nil
	if err := json.Unmarshal(withoutPoints(t, body), &d); err != nil || d.Chosen != nil {
		t.Error("a label that is not there was found", err)
	}
}

// A process with very many labels and phases costs no more than its rows: what a page is sent is bounded.
func TestAnswersAreBounded(t *testing.T) {
	s := still(t, func(snap *snapshot.Snapshot) {
		for n := range 5000 {
			l := snapshot.NewRow(metrics.Label)
			set(l, "label_id", uint64(1000+n))
			set(l, "committed_bytes", uint64(n))
			set(l, "draining_phases", 26)
			set(l, "oldest_draining_ns", uint64(n)*1e9)
			set(l, "draining_objects", 1)
			l.SetText(metrics.Of(metrics.Label).Find("label"), fmt.Sprintf("label %d", n))
			snap.Append(l)
			p := snapshot.NewRow(metrics.Phase)
			set(p, "epoch_era", uint64(n))
			set(p, "state", 1)
			p.SetText(metrics.Of(metrics.Phase).Find("label"), "label 1")
			snap.Append(p)
		}
	})
	_, body := ask(t, s, "/processes/77/now.json?label=label+1", "gzip")
	var d Document
	if err := json.Unmarshal(withoutPoints(t, body), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Labels) != pageLabels || d.MoreLabel < 4900 || len(d.Chosen.Phases) != pagePhases || len(d.Verdict.Findings) > pageFindings {
		t.Errorf("%d labels, %d more, %d phases, %d findings", len(d.Labels), d.MoreLabel, len(d.Chosen.Phases), len(d.Verdict.Findings))
	}
	if len(body) > 200<<10 {
		t.Errorf("%d bytes", len(body))
	}
}

func set(r *snapshot.Row, key string, v uint64) { r.SetUint(metrics.Of(r.Section).Find(key), v) }

func TestAges(t *testing.T) {
	r := snapshot.NewRow(metrics.Label)
	m := metrics.Of(metrics.Label).Find("draining_age_ns")
	counts := make([]uint64, m.Entries())
	counts[0], counts[m.Entries()-1] = 3, 5
	for n := range m.Entries() - 1 {
		if top := m.BucketTop(n); top > 60e9 && top <= 600e9 {
			counts[n] = 7
			break
		}
	}
	r.SetArray(m, counts)
	if got, want := ages([]*snapshot.Row{r}), [7]uint64{3, 0, 0, 7, 0, 0, 5}; got != want {
		t.Errorf("%v, not %v", got, want)
	}
}

func TestRoutes(t *testing.T) {
	s := still(t, nil)
	for _, c := range []struct {
		path string
		code int
		has  string
	}{
		{"/", 302, ""}, {"/processes", 200, "Which process?"}, {"/processes.json", 200, `"pid":77`}, {"/processes/77", 301, ""},
		{"/processes/77/", 200, "server --port 80"}, {"/processes/77/stats.json", 200, `"labels"`}, {"/processes/77/metrics", 200, "temporal_slab_live_bytes "},
		{"/processes/77/doctor", 200, "8. Growth"}, {"/processes/x/", 400, "a number above 0"}, {"/processes/0/", 400, "a number above 0"},
		{"/processes/77/now.json?since=x", 400, "milliseconds"}, {"/processes/77/now.json?since=-1", 400, "milliseconds"},
		{"/processes/2147483647/", 404, "no such process"}, {"/processes/2147483647/now.json", 404, "no such process"},
		{"/assets/page.js", 200, "use strict"}, {"/assets/page.css", 200, "color-scheme"}, {"/assets/page.html", 404, ""}, {"/assets/..%2fserver.go", 404, ""},
		{"/nothing", 404, ""}, {"/healthz", 200, "ok"}, {"/sd.json", 200, "["}, {"/metrics", 200, "temporal_slab_exporter_processes"},
	} {
		reply, body := ask(t, s, c.path, "")
		if reply.StatusCode != c.code || !strings.Contains(string(body), c.has) {
			t.Errorf("%s: %d %.200s", c.path, reply.StatusCode, body)
		}
	}
	if reply, _ := ask(t, s, "/", ""); reply.Header.Get("Location") != "/processes/77/" {
		t.Error("/ leads to", reply.Header.Get("Location"))
	}
}

func TestPagesHoldNoMarkupOfOthers(t *testing.T) {
	s := still(t, nil)
	s.watched[77].command = `<script>alert(1)</script>` + "\x1b[31m"
	for _, path := range []string{"/processes/77/", "/processes"} {
		if _, body := ask(t, s, path, ""); bytes.Contains(body, []byte("<script>alert")) || bytes.Contains(body, []byte{0x1b}) {
			t.Errorf("%s: %.400s", path, body)
		}
	}
}

// Pages ask nobody but their server, have nothing that its policy forbids, make no elements out of text, and look for no part that is not there.
func TestAssets(t *testing.T) {
	files, _ := assets.ReadDir("assets")
	whole := map[string]string{}
	for _, f := range files {
		b, err := assets.ReadFile("assets/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(b), `xmlns="http://www.w3.org/2000/svg"`, "")
		whole[f.Name()] = text
		for _, bad := range []string{"http:", "https:", `"//`, "innerHTML", "outerHTML =", "insertAdjacent", "document.write", "eval(", "new Function", "javascript:", "<style", " style="} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %s", f.Name(), bad)
			}
		}
		if m := regexp.MustCompile(`<script[^>]*>[^<]|<[^>]* on[a-z]+=`).FindString(text); strings.HasSuffix(f.Name(), ".html") && m != "" {
			t.Errorf("%s has %s", f.Name(), m)
		}
		for _, m := range regexp.MustCompile(`(?:src|href)="/assets/([^"]*)"`).FindAllStringSubmatch(text, -1) {
			if types[m[1]] == "" {
				t.Errorf("%s asks for %s", f.Name(), m[1])
			}
		}
	}
	for script, page := range map[string]string{"page.js": "page.html", "pick.js": "pick.html"} {
		found := regexp.MustCompile(`(?:byId|fill)\("([\w-]+)"|\bid: "([\w-]+)"`).FindAllStringSubmatch(whole[script], -1)
		for _, m := range found {
			if id := m[1] + m[2]; !strings.Contains(whole[page], `id="`+id+`"`) {
				t.Errorf("%s has no element %s", page, id)
			}
		}
		if len(found) == 0 {
			t.Error(script, "looks for nothing")
		}
	}
}

func TestCompression(t *testing.T) {
	s := still(t, nil)
	for accept, packed := range map[string]bool{"gzip": true, "br, gzip": true, "gzip;q=0.5": true, "": false, "gzip;q=0": false, "br": false, "gzip; q=0.0": false, "gzipped": false} {
		reply, body := ask(t, s, "/processes/77/now.json", accept)
		if (reply.Header.Get("Content-Encoding") == "gzip") != packed || !json.Valid(body) {
			t.Errorf("%q: %q", accept, reply.Header.Get("Content-Encoding"))
		}
	}
	if reply, _ := ask(t, s, "/healthz", "gzip"); reply.Header.Get("Content-Encoding") != "" {
		t.Error("two letters are compressed")
	}
}

func TestColours(t *testing.T) {
	c := newColours()
	for n := range mostLabels {
		if c.of(fmt.Sprint(n)) != n || c.of(fmt.Sprint(n)) != n {
			t.Fatal("another number the second time")
		}
	}
	if c.of("one more") != -1 || c.of("5") != 5 {
		t.Error("the table has no end")
	}
}

// What is watched is bounded, and the process of the command line stays.
func TestWatchersAreBounded(t *testing.T) {
	s := New(Options{Pid: 1})
	for n := range mostWatched {
		s.watched[n+1] = &watcher{pid: n + 1, colours: s.colours, asked: time.Now().Add(-time.Duration(n) * time.Minute), stop: func() {}, done: closed(), src: nothing{}}
	}
	s.mu.Lock()
	s.room()
	s.mu.Unlock()
	if len(s.watched) != mostWatched-1 || s.watched[1] == nil || s.watched[mostWatched] != nil {
		t.Errorf("%d are watched", len(s.watched))
	}
	for _, w := range s.watched {
		w.asked = time.Now().Add(-2 * unaskedFor)
	}
	s.mu.Lock()
	s.room()
	s.mu.Unlock()
	if len(s.watched) != 1 || s.watched[1] == nil {
		t.Errorf("%d are watched that nobody asks for", len(s.watched))
	}
}

func TestReplay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.rec")
	r, err := record.Create(path, record.Whose{Pid: 4711, Command: "server", Host: "h"}, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now().Truncate(time.Second).Add(-time.Hour)
	for n := range 20 {
		snap := testdata.Snapshot()
		set(snap.Document(), "uptime_ns", snap.Document().U("uptime_ns")+uint64(n)*1e9)
		set(snap.Document(), "timestamp_ns", snap.Document().U("timestamp_ns")+uint64(n)*1e9)
		set(snap.Global(), "live_bytes", uint64(n))
		if err := r.Add(snap, begin.Add(time.Duration(n)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	r.Close()
	s := New(Options{LeakSeconds: 60})
	defer s.Close()
	if pid, err := s.Replay(path + "@+10s"); err != nil || pid != 4711 {
		t.Fatal(pid, err)
	}
	_, body := ask(t, s, "/processes/4711/now.json", "")
	var d Document
	if err := json.Unmarshal(withoutPoints(t, body), &d); err != nil {
		t.Fatal(err)
	}
	if !d.Recorded || d.Now.Live != 10 || d.Host != "h" || d.Command != "server" || d.At != begin.Add(10*time.Second).UnixMilli() || d.Over != 1 {
		t.Errorf("%+v", d)
	}
	if got := s.watched[4711].history.Len(); got != 11 {
		t.Errorf("%d points", got)
	}
	if reply, _ := ask(t, s, "/", ""); reply.Header.Get("Location") != "/processes/4711/" {
		t.Error(reply.Header.Get("Location"))
	}
	if _, err := s.Replay(path + "@noon"); err == nil {
		t.Error("noon is a time")
	}
}
