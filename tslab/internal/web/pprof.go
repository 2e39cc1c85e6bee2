package web

import (
	"bytes"
	"net/http"
	"time"

	"temporal-slab/tslab/internal/heap"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/units"
)

// pprof is a heap profile as it was sent, kept for some seconds: names of functions take a while to be found.
type pprof struct {
	at    time.Time
	bytes []byte
	err   error
}

// profile is the heap profile of a process, for servers that scrape pprof and for go tool pprof; it is compressed by itself.
func (s *Server) profile(w *watcher, out http.ResponseWriter, _ *http.Request) {
	if w.replay {
		http.Error(out, "a recording has no heap profile", http.StatusNotFound)
		return
	}
	w.profiling.Lock()
	if time.Since(w.pprof.at) >= profileKept {
		b, err := pprofOf(w.pid)
		w.pprof = pprof{time.Now(), b, err}
	}
	kept := w.pprof
	w.profiling.Unlock()
	if kept.err != nil {
		http.Error(out, units.Text(kept.err.Error()), http.StatusNotFound)
		return
	}
	out.Header().Set("Content-Type", "application/octet-stream")
	out.Header().Set("Content-Disposition", `attachment; filename="heap.pb.gz"`)
	_, _ = out.Write(kept.bytes)
}

func pprofOf(pid int) ([]byte, error) {
	raw, err := segment.ReadProfile(pid, -1)
	if err != nil {
		return nil, err
	}
	p, err := heap.Of(raw...)
	if err != nil {
		return nil, err
	}
	_ = heap.Symbolize(p, pid)
	p.TimeNanos = time.Now().Add(-raw[0].Age).UnixNano()
	var b bytes.Buffer
	err = p.Write(&b)
	return b.Bytes(), err
}
