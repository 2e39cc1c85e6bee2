package cli

// serve: a small web server for one source. It listens on the loopback unless told otherwise, checks the Host header
// there (a page from elsewhere cannot have a browser ask it), knows four paths and two methods, and gives every
// connection little time and memory.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"temporal-slab/tslab/internal/prom"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/source"
	"temporal-slab/tslab/internal/view"
	"temporal-slab/tslab/internal/web"
)

const (
	serveConnections = 64
	serveTime        = 30 * time.Second // of one request
	serveFresh       = 100 * time.Millisecond
	drainTime        = 5 * time.Second
)

func (a *app) serveCommand() *cobra.Command {
	listen, stale := "", time.Duration(0)
	c := &cobra.Command{
		Use: "serve", Short: "Serve the figures over HTTP, for Prometheus", Args: noArgs,
		Long: `Serves the statistics of a process, which serve reads again for each request:

  /metrics      Prometheus text, or OpenMetrics if the scraper accepts it
  /stats.json   the document of slab_stats_json
  /healthz      200 if the source can be read and its figures are current. 503 if the source cannot be read, if its
                figures are older than --stale-after, if the process is stopped or has ended, or if the allocator has
                changed since and published nothing for three seconds. If there are figures, the answer gives their
                age. An idle process publishes nothing: let it call slab_stats_publish, or set --stale-after 0

If the source cannot be read, a scrape succeeds, and temporal_slab_exporter_up is 0. If the process ends, serve
reports this on standard error, and then serves the next process of the same user and command line. serve listens
only on the loopback address unless --listen says otherwise. There is no password, so use a proxy that adds
authentication.`,
		Example: `  tslab serve --pid 4711
  tslab serve --pid 4711 --listen 127.0.0.1:9200 &
  curl -s http://127.0.0.1:9200/metrics | promtool check metrics`,
		RunE: func(c *cobra.Command, _ []string) error {
			if a.choice.Stdin {
				return errors.New("serve reads the source again for each request, which is impossible with --stdin")
			}
			if stale < 0 {
				return errors.New("--stale-after takes 0 (never) or more")
			}
			src, err := a.openAgain(c)
			if err != nil {
				return err
			}
			defer src.Close()
			return a.serve(c.Context(), src, listen, stale)
		},
	}
	a.sourceFlags(c)
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:9464", "listen on this HOST:PORT; port 0 chooses a free port")
	c.Flags().DurationVar(&stale, "stale-after", time.Minute, "answer 503 at /healthz if the figures are older than this; 0: never")
	c.Flags().BoolVar(&a.json, "json", false, "print the address on which serve listens in JSON")
	return c
}

func (a *app) serve(ctx context.Context, src source.Source, listen string, stale time.Duration) error {
	if err := checkListen(listen); err != nil {
		return err
	}
	if _, err := src.Next(ctx); err != nil && !errors.Is(err, segment.ErrEnded) { // wrong from the start is wrong usage
		return err // a process that ended a moment ago is not: it was said that the next one is waited for
	}
	s := &server{src: src, stale: stale}
	return a.listenAndServe(ctx, listen, s.handler(), func(address string) string {
		return fmt.Sprintf("serving %s on http://%s/metrics", src.Name(), address)
	})
}

func checkListen(listen string) error {
	host, port, err := net.SplitHostPort(listen)
	switch _, wrong := strconv.ParseUint(port, 10, 16); {
	case err != nil:
		return fmt.Errorf("--listen takes HOST:PORT, not %q", listen)
	case wrong != nil:
		return fmt.Errorf("--listen takes a port from 0 (any free port) to 65535, not %q", port)
	case host == "":
		return errors.New("--listen needs a host: 127.0.0.1 for this machine only, 0.0.0.0 for all machines")
	}
	return nil
}

// networkOf is "tcp4" for an address of IPv4, so that 0.0.0.0 is not all addresses of IPv6, too; "tcp" otherwise.
func networkOf(listen string) string {
	if host, _, _ := net.SplitHostPort(listen); net.ParseIP(host).To4() != nil && !strings.Contains(host, ":") {
		return "tcp4"
	}
	return "tcp"
}

// listenAndServe serves until the context ends; `tell` says what is served at an address.
func (a *app) listenAndServe(ctx context.Context, listen string, handler http.Handler, tell func(address string) string) error {
	l, err := net.Listen(networkOf(listen), listen)
	if err != nil {
		return err
	}
	h := &http.Server{Handler: guard(handler, l.Addr()), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: serveTime, IdleTimeout: serveTime, MaxHeaderBytes: 16 << 10}
	if a.json {
		_ = a.writeJSON(map[string]any{"address": l.Addr().String()})
	} else {
		a.println(tell(l.Addr().String()))
	}
	if err := a.out.Flush(); err != nil {
		l.Close()
		return err
	}
	done := make(chan error, 1)
	go func() { done <- h.Serve(limit(l, serveConnections)) }()
	select {
	case err = <-done:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := h.Shutdown(drain); err != nil {
		h.Close()
	}
	return nil
}

type server struct {
	src   source.Source
	stale time.Duration
	mu    sync.Mutex // one reading at a time
	last  *snapshot.Snapshot
	err   error
	at    time.Time
}

// read takes a snapshot, or the one that was taken an instant ago.
func (s *server) read(ctx context.Context) (*snapshot.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) >= serveFresh {
		snap, err := s.src.Next(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err() // the asker left: nothing is known about the source
		}
		s.last, s.err = snap, err
		s.at = time.Now()
	}
	return s.last, s.err
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", s.metrics)
	mux.HandleFunc("/stats.json", s.stats)
	mux.HandleFunc("/healthz", s.health)
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "tslab serves %s\n\n/metrics\n/stats.json\n/healthz\n", s.src.Name())
	})
	return mux
}

// guard lets two methods in, and at the loopback only who names it: a page from elsewhere cannot have a browser ask.
func guard(mux http.Handler, addr net.Addr) http.Handler {
	loopback := addr.(*net.TCPAddr).IP.IsLoopback()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Type", "text/plain; charset=utf-8")
		head.Set("Content-Security-Policy", "default-src 'self'")
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Cache-Control", "no-store")
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			head.Set("Allow", "GET, HEAD")
			http.Error(w, "GET and HEAD only", http.StatusMethodNotAllowed)
		case loopback && !isLoopbackHost(r.Host):
			http.Error(w, "this is a local service; use localhost or its loopback address", http.StatusForbidden)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

func isLoopbackHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

func (s *server) metrics(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	snap, err := s.read(r.Context())
	registry := prometheus.NewRegistry()
	if err == nil {
		if _, err = prom.Registry(snap).Gather(); err == nil {
			registry.MustRegister(prom.Collector{Snap: snap})
		}
	}
	up := prometheus.NewGauge(prometheus.GaugeOpts{Name: "temporal_slab_exporter_up", Help: "Whether the statistics could be read."})
	took := prometheus.NewGauge(prometheus.GaugeOpts{Name: "temporal_slab_exporter_scrape_duration_seconds", Help: "Time spent reading the statistics."})
	registry.MustRegister(up, took)
	if err == nil {
		up.Set(1)
	}
	took.Set(time.Since(begin).Seconds())
	w.Header().Del("Content-Type")
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true, DisableCompression: false}).ServeHTTP(w, r)
}

func (s *server) stats(w http.ResponseWriter, r *http.Request) {
	snap, err := s.read(r.Context())
	if err != nil {
		http.Error(w, said(err), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = snap.WriteJSON(w)
}

func (s *server) health(w http.ResponseWriter, r *http.Request) {
	snap, err := s.read(r.Context())
	if err != nil {
		http.Error(w, said(err), http.StatusServiceUnavailable)
		return
	}
	if web.StandsStill(snap, s.stale) {
		http.Error(w, "the statistics are stale"+view.Fresh(snap), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok"+view.Fresh(snap))
}

// limit lets so many connections in at a time; the others wait in the kernel's queue.
func limit(l net.Listener, most int) net.Listener {
	closed := make(chan struct{})
	return &limited{l, make(chan struct{}, most), closed, sync.OnceFunc(func() { close(closed) })}
}

type limited struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	shut   func()
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &counted{Conn: c, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

func (l *limited) Close() error {
	l.shut()
	return l.Listener.Close()
}

type counted struct {
	net.Conn
	leave func()
}

func (c *counted) Close() error {
	c.leave()
	return c.Conn.Close()
}
