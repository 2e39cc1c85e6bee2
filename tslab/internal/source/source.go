// Package source is where snapshots come from: a file, standard input, a URL, or the shared memory of a process.
package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	"temporal-slab/tslab/internal/options"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/snapshot"
)

// Source gives one snapshot after another; io.EOF when it has no more.
type Source interface {
	Next(ctx context.Context) (*snapshot.Snapshot, error)
	Name() string
	Close() error
}

// Choice is what the command line says; exactly one of the first four.
type Choice struct {
	Pid     int
	PidSet  bool
	File    string
	Stdin   bool
	URL     string
	Slot    int
	Timeout time.Duration
}

// Open checks the choice and opens it.
func (c Choice) Open(stdin io.Reader) (Source, error) {
	n := 0
	for _, given := range []bool{c.PidSet, c.File != "", c.Stdin, c.URL != ""} {
		if given {
			n++
		}
	}
	switch {
	case n == 0:
		return nil, errors.New("whose statistics? Give one of --pid N, --file F, --stdin, --url U ('tslab ls' lists processes)")
	case n > 1:
		return nil, errors.New("give one of --pid, --file, --stdin and --url, not several")
	case c.Slot >= 0 && !c.PidSet:
		return nil, errors.New("--allocator goes with --pid only")
	case c.Timeout <= 0:
		return nil, errors.New("--timeout has to be more than 0")
	case c.PidSet:
		return openPid(c.Pid, c.Slot)
	case c.Stdin:
		return &stream{snapshot.NewReader(stdin)}, nil
	case c.URL != "":
		return openURL(c.URL, c.Timeout)
	}
	return &file{c.File}, nil
}

// ---- file ----

type file struct{ path string }

func (f *file) Name() string { return f.path }
func (f *file) Close() error { return nil }

func (f *file) Next(context.Context) (*snapshot.Snapshot, error) { return ReadFile(f.path) }

// ReadFile reads the one document of a regular file.
func ReadFile(path string) (*snapshot.Snapshot, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO would wait for its writer
	if err != nil {
		return nil, plain(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, plain(err)
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return nil, fmt.Errorf("%s: is a directory", path)
	case !mode.IsRegular():
		return nil, fmt.Errorf("%s: is no regular file; use --stdin < %s", path, path)
	case info.Size() > snapshot.MaxBytes:
		return nil, fmt.Errorf("%s: has %d MiB, and statistics have %d at most", path, info.Size()>>20, snapshot.MaxBytes>>20)
	}
	s, err := snapshot.Parse(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.Origin = path
	return s, nil
}

func plain(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return err
}

// ---- standard input ----

type stream struct{ r *snapshot.Reader }

func (s *stream) Name() string { return "standard input" }
func (s *stream) Close() error { return nil }

// Next is read beside, so that a writer that says nothing does not outlast an interrupt.
func (s *stream) Next(ctx context.Context) (*snapshot.Snapshot, error) {
	type result struct {
		snap *snapshot.Snapshot
		err  error
	}
	done := make(chan result, 1)
	go func() {
		snap, err := s.r.Next()
		done <- result{snap, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-done:
		if r.err != nil && r.err != io.EOF {
			return nil, fmt.Errorf("standard input: %w", r.err)
		}
		if r.snap != nil {
			r.snap.Origin = "standard input"
		}
		return r.snap, r.err
	}
}

// Only makes sure that a source which is a stream has no further document.
func Only(ctx context.Context, src Source) (*snapshot.Snapshot, error) {
	s, err := src.Next(ctx)
	if err == io.EOF {
		return nil, fmt.Errorf("%s: no document", src.Name())
	}
	if _, ok := src.(*stream); ok && err == nil {
		if _, more := src.Next(ctx); more != io.EOF {
			if more == nil {
				more = errors.New("standard input: something follows the document (only watch and top read several)")
			}
			return nil, more
		}
	}
	return s, err
}

// ---- URL ----

type web struct {
	url     *url.URL
	client  *http.Client
	timeout time.Duration
}

const maxRedirects = 3

func openURL(text string, timeout time.Duration) (Source, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("--url takes http://HOST[:PORT]/PATH or https://..., not %q", text)
	}
	if u.Path == "" {
		u.Path = "/stats.json"
	}
	client := &http.Client{CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		return nil
	}}
	return &web{u, client, timeout}, nil
}

func (w *web) Name() string { return w.url.Redacted() }

func (w *web) Close() error {
	w.client.CloseIdleConnections()
	return nil
}

func (w *web) Next(ctx context.Context) (*snapshot.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	s, err := w.get(ctx)
	if err == nil {
		s.Origin = w.Name()
		s.Just()
		return s, nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("%s: no whole answer within %s (--timeout)", w.Name(), w.timeout)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return nil, fmt.Errorf("%s: %w", w.Name(), err)
}

func (w *web) get(ctx context.Context) (*snapshot.Snapshot, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return snapshot.Parse(resp.Body)
}

// ---- process ----

type process struct {
	pid, slot int
	seg       *segment.Segment
	ignored   []string
}

func openPid(pid, slot int) (Source, error) {
	seg, err := segment.Attach(pid)
	if err != nil {
		return nil, err
	}
	return &process{pid, slot, seg, options.OfProcess(pid)}, nil
}

func (p *process) Name() string { return fmt.Sprintf("pid %d", p.pid) }
func (p *process) Close() error { return p.seg.Close() }

func (p *process) Next(context.Context) (*snapshot.Snapshot, error) {
	s, err := p.seg.Read(p.slot)
	if err != nil {
		return nil, fmt.Errorf("pid %d: %w", p.pid, err)
	}
	s.Origin, s.Ignored = p.Name(), p.ignored
	return s, nil
}
