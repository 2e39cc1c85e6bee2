package web

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"temporal-slab/tslab/internal/doctor"
	"temporal-slab/tslab/internal/prom"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/units"
	"temporal-slab/tslab/internal/view"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

//go:embed assets
var assets embed.FS

// Options of a server.
type Options struct {
	Pid         int           // the process that / leads to; 0: the picker
	LeakSeconds uint64        // see doctor.Diagnose
	Stale       time.Duration // from which healthz says 503; 0: never
	TopLabels   int           // series of labels that /metrics of all processes has of each
}

// Server is the pages of all processes of this user.
type Server struct {
	o       Options
	colours *colours
	mu      sync.Mutex
	watched map[int]*watcher
	list    []Process
	listed  time.Time
	listing sync.Mutex
}

// New makes a server; Close ends what it follows.
func New(o Options) *Server {
	return &Server{o: o, colours: newColours(), watched: map[int]*watcher{}}
}

// Close ends what it follows.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for pid, w := range s.watched {
		w.close()
		delete(s.watched, pid)
	}
}

// Watch begins to follow a process, so that its page has a history when somebody comes.
func (s *Server) Watch(pid int) error {
	_, err := s.get(pid)
	return err
}

// Replay shows a recording at a time, FILE@TIME, with the hour before it. / leads to it.
func (s *Server) Replay(word string) (pid int, err error) {
	w, err := replayed(word, s.colours)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched[w.pid], s.o.Pid = w, w.pid
	return w.pid, nil
}

// get is the watcher of a process; it begins to follow it.
func (s *Server) get(pid int) (*watcher, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.watched[pid]; w != nil {
		w.touch()
		return w, nil
	}
	s.room()
	w, err := watch(pid, s.colours)
	if err != nil {
		return nil, err
	}
	s.watched[pid] = w
	return w, nil
}

// room lets those go that nobody asks for any more, and of too many the one that was asked for the longest time ago. The
// caller holds s.mu.
func (s *Server) room() {
	var oldest *watcher
	for _, w := range s.watched {
		switch idle := w.unasked(); {
		case w.replay || w.pid == s.o.Pid:
		case idle > unaskedFor:
			delete(s.watched, w.pid)
			w.close()
		case oldest == nil || idle > oldest.unasked():
			oldest = w
		}
	}
	if len(s.watched) >= mostWatched && oldest != nil {
		delete(s.watched, oldest.pid)
		oldest.close()
	}
}

// ---- processes ----

// Process is a row of the picker.
type Process struct {
	Pid        int      `json:"pid"`
	Command    string   `json:"command"`
	State      string   `json:"state"`
	Age        *float64 `json:"age_seconds"`
	Allocators int      `json:"allocators"`
	Live       uint64   `json:"live_bytes"`
	Committed  uint64   `json:"committed_bytes"`
	Growth     float64  `json:"growth_per_second"`
	LimitNS    uint64   `json:"limit_ns"`
	Open       uint64   `json:"open_phases"`
	Error      string   `json:"error,omitempty"`
	Recorded   bool     `json:"recorded,omitempty"`
}

const (
	listKept  = time.Second
	mostShown = 512 // processes in a list
)

// processes lists what can be looked at, not more often than once a second.
func (s *Server) processes() []Process {
	s.listing.Lock()
	defer s.listing.Unlock()
	if s.list != nil && time.Since(s.listed) < listKept {
		return s.list
	}
	rows := []Process{}
	list, _ := segment.List()
	for _, p := range list {
		if len(rows) < mostShown {
			rows = append(rows, processOf(p))
		}
		p.Segment.Close()
	}
	s.mu.Lock()
	for _, w := range s.watched {
		if w.replay {
			rows = append(rows, w.row())
		}
	}
	s.mu.Unlock()
	slices.SortStableFunc(rows, func(a, b Process) int {
		return cmp.Or(cmp.Compare(b.Committed, a.Committed), cmp.Compare(a.Pid, b.Pid))
	})
	s.list, s.listed = rows, time.Now()
	return rows
}

func processOf(p segment.Process) Process {
	row := Process{Pid: p.Pid, Command: units.Text(p.Command), State: p.State.String(), Allocators: len(p.Allocators)}
	snap, err := p.Segment.Read(-1)
	if err != nil {
		row.Error = units.Text(err.Error())
		return row
	}
	row.fill(snap)
	return row
}

func (p *Process) fill(snap *snapshot.Snapshot) {
	g := snap.Global()
	p.Live, p.Committed, p.Growth = g.U("live_bytes"), g.U("committed_bytes"), g.F("growth_per_second")
	p.LimitNS, p.Open = g.U("limit_ns"), g.U("open_phases")
	if age, ok := snap.Old(); ok {
		v := age.Seconds()
		p.Age = &v
	}
	if snap.State == snapshot.Ended {
		p.State = "ended"
	}
}

func (w *watcher) row() Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	row := Process{Pid: w.pid, Command: units.Text(w.command), State: "recorded", Allocators: 1, Recorded: true}
	if w.last != nil {
		row.fill(w.last.To)
		row.Age = nil
	}
	return row
}

// ---- answers ----

// Handler answers all routes. It is for GET and HEAD; who may ask is the caller's to decide.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", s.first)
	mux.HandleFunc("/processes", s.pick)
	mux.HandleFunc("/processes.json", func(w http.ResponseWriter, r *http.Request) { sendJSON(w, r, s.processes()) })
	mux.HandleFunc("/metrics", s.fleet)
	mux.HandleFunc("/sd.json", s.discovery)
	mux.HandleFunc("/assets/{name}", asset)
	mux.HandleFunc("/processes/{pid}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.PathValue("pid")+"/", http.StatusMovedPermanently)
	})
	mux.HandleFunc("/processes/{pid}/{$}", s.of(s.page))
	mux.HandleFunc("/processes/{pid}/now.json", s.of(s.now))
	mux.HandleFunc("/processes/{pid}/stats.json", s.of(s.stats))
	mux.HandleFunc("/processes/{pid}/metrics", s.of(s.metrics))
	mux.HandleFunc("/processes/{pid}/doctor", s.of(s.doctor))
	mux.HandleFunc("/processes/{pid}/profile", s.of(s.profile))
	mux.HandleFunc("/processes/{pid}/healthz", s.of(s.health))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	return mux
}

// of finds the process of a request.
func (s *Server) of(do func(*watcher, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		pid, err := strconv.Atoi(r.PathValue("pid"))
		if err != nil || pid <= 0 {
			http.Error(w, "the id of a process is a number above 0", http.StatusBadRequest)
			return
		}
		watcher, err := s.get(pid)
		if err != nil {
			code := http.StatusNotFound
			if strings.Contains(err.Error(), "not yours to read") {
				code = http.StatusForbidden
			}
			http.Error(w, units.Text(err.Error()), code)
			return
		}
		do(watcher, w, r)
	}
}

func (s *Server) first(w http.ResponseWriter, r *http.Request) {
	to := "processes"
	if s.o.Pid != 0 {
		to = "processes/" + strconv.Itoa(s.o.Pid) + "/"
	}
	http.Redirect(w, r, to, http.StatusFound)
}

var pages = template.Must(template.New("").Funcs(template.FuncMap{"bytes": units.Bytes, "words": strings.Fields}).ParseFS(assets, "assets/*.html"))

func (s *Server) pick(w http.ResponseWriter, r *http.Request) {
	render(w, r, "pick.html", s.processes())
}

func (s *Server) page(of *watcher, w http.ResponseWriter, r *http.Request) {
	render(w, r, "page.html", map[string]any{"Pid": of.pid, "Command": units.Text(of.command), "Leak": s.o.LeakSeconds})
}

func render(w http.ResponseWriter, r *http.Request, name string, data any) {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, data); err != nil {
		http.Error(w, "the page could not be created", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	send(w, r, b.Bytes())
}

var types = map[string]string{"page.js": "text/javascript", "pick.js": "text/javascript", "common.js": "text/javascript", "page.css": "text/css", "icon.svg": "image/svg+xml"}

func asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	kind, ok := types[name]
	b, err := assets.ReadFile("assets/" + name)
	if !ok || err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind+"; charset=utf-8")
	send(w, r, b)
}

func sendJSON(w http.ResponseWriter, r *http.Request, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "the figures could not be encoded", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	send(w, r, b)
}

const leastCompressed = 1 << 10

// send compresses what is long, for who takes it so.
func send(w http.ResponseWriter, r *http.Request, b []byte) {
	w.Header().Set("Vary", "Accept-Encoding")
	if len(b) >= leastCompressed && takesGzip(r.Header.Get("Accept-Encoding")) {
		var small bytes.Buffer
		z, _ := gzip.NewWriterLevel(&small, gzip.BestSpeed)
		_, _ = z.Write(b)
		_ = z.Close()
		w.Header().Set("Content-Encoding", "gzip")
		b = small.Bytes()
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b)
}

// takesGzip says whether gzip is among what is accepted, and not by a quality of 0.
func takesGzip(accepts string) bool {
	for word := range strings.SplitSeq(accepts, ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(word), ";")
		if strings.TrimSpace(name) == "gzip" {
			q, has := strings.CutPrefix(strings.ReplaceAll(quality, " ", ""), "q=")
			v, err := strconv.ParseFloat(q, 64)
			return !has || err == nil && v > 0
		}
	}
	return false
}

func (s *Server) now(of *watcher, w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	since := int64(0)
	if text := q.Get("since"); text != "" {
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < 0 {
			http.Error(w, "since takes milliseconds since 1970", http.StatusBadRequest)
			return
		}
		since = v
	}
	var chosen *string
	if q.Has("label") {
		name := q.Get("label")
		chosen = &name
	}
	of.mu.Lock()
	d := of.document(since, chosen, s.o.LeakSeconds)
	i := of.last
	of.mu.Unlock()
	if d.Chosen != nil && !of.replay {
		of.profile(d.Chosen, i, d.Chosen.name)
	}
	sendJSON(w, r, d)
}

// latest is the latest reading; a line with the reason, and nil, when there is none.
func (w *watcher) latest(out http.ResponseWriter, r *http.Request) *snapshot.Snapshot {
	w.fresh(r.Context())
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil || w.err != nil && !w.replay {
		text := "nothing has been read yet"
		if w.err != nil {
			text = units.Text(w.err.Error())
		}
		http.Error(out, text, http.StatusServiceUnavailable)
		return nil
	}
	return w.last.To
}

func (s *Server) stats(of *watcher, w http.ResponseWriter, r *http.Request) {
	if snap := of.latest(w, r); snap != nil {
		var b bytes.Buffer
		_ = snap.WriteJSON(&b)
		w.Header().Set("Content-Type", "application/json")
		send(w, r, b.Bytes())
	}
}

func (s *Server) metrics(of *watcher, w http.ResponseWriter, r *http.Request) {
	if snap := of.latest(w, r); snap != nil {
		w.Header().Del("Content-Type")
		promhttp.HandlerFor(prom.Registry(snap), promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, r)
	}
}

func (s *Server) doctor(of *watcher, w http.ResponseWriter, r *http.Request) {
	if snap := of.latest(w, r); snap != nil {
		report := doctor.Diagnose(snap, s.o.LeakSeconds)
		report.Head += view.Fresh(snap)
		var b bytes.Buffer
		report.Write(&b, func(line string) string { return line })
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		send(w, r, b.Bytes())
	}
}

func (s *Server) health(of *watcher, w http.ResponseWriter, r *http.Request) {
	snap := of.latest(w, r)
	if snap == nil {
		return
	}
	if StandsStill(snap, s.o.Stale) {
		http.Error(w, "the statistics are stale"+view.Fresh(snap), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok"+view.Fresh(snap))
}

// StandsStill says whether figures are not of now: the process is stopped or has ended, they are older than `stale` (0: never
// too old), or an allocator has changed since and published nothing.
func StandsStill(snap *snapshot.Snapshot, stale time.Duration) bool {
	age, known := Youngest(snap)
	return snap.State == snapshot.Stopped || snap.State == snapshot.Ended || stale != 0 && (known && age > stale || snap.Stale(snapshot.Latest))
}

// Youngest is the age of the latest figures of any allocator: an idle one beside others publishes nothing.
func Youngest(snap *snapshot.Snapshot) (age time.Duration, known bool) {
	for _, p := range snap.Each() {
		if a, ok := p.Old(); ok && (!known || a < age) {
			age, known = a, true
		}
	}
	return age, known
}

// Wait waits until a watcher has read so many times, for tests and for pages that begin.
func (s *Server) Wait(ctx context.Context, pid, points int) bool {
	for ctx.Err() == nil {
		s.mu.Lock()
		w := s.watched[pid]
		s.mu.Unlock()
		if w == nil {
			return false
		}
		w.mu.Lock()
		n := w.history.Len()
		w.mu.Unlock()
		if n >= points {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}
