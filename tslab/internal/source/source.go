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
	"strings"
	"syscall"
	"time"

	"temporal-slab/tslab/internal/options"
	"temporal-slab/tslab/internal/record"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/snapshot"
)

// Source gives one snapshot after another; io.EOF when it has no more.
type Source interface {
	Next(ctx context.Context) (*snapshot.Snapshot, error)
	Name() string
	Close() error
}

// Choice is what the command line says: exactly one of a process, by its id or by its name, a file, a stream, an address
// and a recording.
type Choice struct {
	Pid     int
	PidSet  bool
	File    string
	Stdin   bool
	URL     string
	Replay  string // FILE@TIME
	Name    string // of a program
	Slot    int
	Timeout time.Duration
	Again   func(text string) // given: goes on when a process has ended and begun anew, and tells of both
}

// Open checks the choice and opens it.
func (c Choice) Open(stdin io.Reader) (Source, error) {
	var given []string
	for _, flag := range []struct {
		name string
		is   bool
	}{{"--pid", c.PidSet}, {"--name", c.Name != ""}, {"--file", c.File != ""}, {"--stdin", c.Stdin}, {"--url", c.URL != ""}, {"--replay", c.Replay != ""}} {
		if flag.is {
			given = append(given, flag.name)
		}
	}
	n := len(given)
	switch {
	case n == 0:
		return nil, errors.New("no statistics to read: give one of --pid N, --name PROGRAM, --file F, --stdin, --url U, --replay F@TIME ('tslab ls' lists processes)")
	case n > 1:
		return nil, fmt.Errorf("give one of %s and %s, not several", strings.Join(given[:n-1], ", "), given[n-1])
	case c.Slot >= 0 && !c.PidSet && c.Name == "":
		return nil, errors.New("--allocator needs --pid or --name")
	case c.Timeout <= 0:
		return nil, errors.New("--timeout takes more than 0")
	case c.PidSet:
		return openPid(c.Pid, c.Slot, c.Again)
	case c.Replay != "":
		return openReplay(c.Replay)
	case c.Name != "":
		pid, err := Named(c.Name)
		if err != nil {
			return nil, err
		}
		return openPid(pid, c.Slot, c.Again)
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

// ReadFile reads the one document of a regular file, or a reading of a recording: FILE@TIME.
func ReadFile(path string) (*snapshot.Snapshot, error) {
	if file, when := record.Split(path); when != "" || isRecording(file) {
		return readRecording(file, when)
	}
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
		return nil, fmt.Errorf("%s: is not a regular file; use --stdin < %s", path, path)
	case info.Size() > snapshot.MaxBytes:
		return nil, fmt.Errorf("%s: has %d MiB, but statistics have at most %d", path, info.Size()>>20, snapshot.MaxBytes>>20)
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
	again     func(text string)
	gone      bool // told
	command   string
	before    map[int]bool // processes of the same command that were there besides
}

func openPid(pid, slot int, again func(string)) (Source, error) {
	command := segment.Command(pid) // first: one that ends from here on is known by it
	seg, err := segment.Attach(pid)
	if err != nil {
		return nil, err
	}
	p := &process{pid: pid, slot: slot, seg: seg, ignored: options.OfProcess(pid), again: again, command: command}
	if again != nil {
		p.before = p.twins()
	}
	return p, nil
}

func (p *process) Name() string { return fmt.Sprintf("pid %d", p.pid) }
func (p *process) Close() error { return p.seg.Close() }

func (p *process) Next(context.Context) (*snapshot.Snapshot, error) {
	s, err := p.seg.Read(p.slot)
	switch {
	case err == nil && isOld(s) && p.renewed():
		s, err = p.seg.Read(p.slot)
	case errors.Is(err, segment.ErrEnded) && p.again != nil && p.successor():
		s, err = p.seg.Read(p.slot)
	}
	if err != nil {
		return nil, fmt.Errorf("pid %d: %w", p.pid, err)
	}
	s.Origin, s.Ignored = p.Name(), p.ignored
	return s, nil
}

// isOld says whether a process that works would have published since.
func isOld(s *snapshot.Snapshot) bool {
	age, ok := s.Old()
	return ok && age >= snapshot.Latest
}

// renewed attaches to the segment that the process has now: one that has run another program (execve) or closed its
// descriptors has left the old one behind, which says the same for ever.
func (p *process) renewed() bool {
	seg, err := segment.Attach(p.pid)
	if err != nil {
		return false
	}
	if seg.Made() == p.seg.Made() {
		seg.Close()
		return false
	}
	p.take(seg)
	return true
}

// successor attaches to the process that runs the same command since the other has ended, if there is just one.
func (p *process) successor() bool {
	if !p.gone {
		p.gone = true
		p.again(fmt.Sprintf("pid %d has ended; waiting for another process of %q", p.pid, p.command))
	}
	found := Successor(p.command, p.pid, p.before)
	if found == 0 {
		return false
	}
	seg, err := segment.Attach(found)
	if err != nil {
		return false
	}
	p.again(fmt.Sprintf("going on with pid %d, which runs %q", found, p.command))
	p.pid, p.gone, p.ignored = found, false, options.OfProcess(found)
	p.take(seg)
	return true
}

func (p *process) take(seg *segment.Segment) {
	p.seg.Close()
	p.seg = seg
}

// twins are the other processes with the same command line that show statistics.
func (p *process) twins() map[int]bool { return Twins(p.command, p.pid) }

// Twins are the processes with a command line that show statistics, without one.
func Twins(command string, without int) map[int]bool {
	pids := map[int]bool{}
	list, _ := segment.List()
	for _, other := range list {
		if other.Command == command && other.Pid != without {
			pids[other.Pid] = true
		}
		other.Segment.Close()
	}
	return pids
}

// Successor is the process that runs a command line since another one has ended, if there is just one that was not there
// before; else 0.
func Successor(command string, ended int, before map[int]bool) int {
	found := 0
	for pid := range Twins(command, ended) {
		switch {
		case before[pid]:
		case found != 0:
			return 0
		default:
			found = pid
		}
	}
	return found
}
