package web

import (
	"context"
	"errors"
	"sync"
	"time"

	"temporal-slab/tslab/internal/rates"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/source"
)

// Bounds of a server: processes that are followed at a time, and how long one is that nobody asks for.
const (
	mostWatched = 16
	unaskedFor  = time.Hour
	mostLabels  = 8192 // that have a colour of their own
	readFresh   = 100 * time.Millisecond
)

// watcher follows a process: it reads it once a second and keeps its history until it is closed.
type watcher struct {
	pid     int
	command string
	host    string // of a recording
	src     source.Source
	stop    context.CancelFunc
	done    chan struct{}
	colours *colours
	before  map[int]bool // processes of the same command that were there already

	reading sync.Mutex // one at a time

	mu      sync.Mutex
	at      time.Time // of the latest reading
	point   time.Time // of the latest point of the history
	series  rates.Series
	last    *rates.Interval // nil before the first reading
	err     error           // of the latest reading
	ended   bool
	next    int // the process that runs the same command since this one has ended; 0: none
	history History
	asked   time.Time
	replay  bool // from a recording: nothing is read

	profiling sync.Mutex
	profiled  profiled
	pprof     pprof
}

// colours give each label a number, by which pages give it a colour: the same in each process of this server, and another in
// the next server, which pages tell by when it began.
type colours struct {
	mu    sync.Mutex
	names map[string]int
	begun int64 // milliseconds since 1970
}

func newColours() *colours { return &colours{names: map[string]int{}, begun: time.Now().UnixMilli()} }

func (c *colours) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.names[name]
	if !ok {
		if len(c.names) >= mostLabels {
			return -1
		}
		n = len(c.names)
		c.names[name] = n
	}
	return n
}

// watch begins to follow a process.
func watch(pid int, c *colours) (*watcher, error) {
	src, err := source.Choice{Pid: pid, PidSet: true, Slot: -1, Timeout: time.Second}.Open(nil)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &watcher{pid: pid, command: segment.Command(pid), src: src, stop: stop, done: make(chan struct{}), colours: c, asked: time.Now()}
	w.before = source.Twins(w.command, pid)
	if err := w.read(ctx); err != nil && w.last == nil && !errors.Is(err, segment.ErrEnded) {
		stop()
		src.Close()
		return nil, err
	}
	go w.run(ctx)
	return w, nil
}

func (w *watcher) run(ctx context.Context) {
	defer close(w.done)
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			_ = w.read(ctx)
		}
	}
}

// fresh reads anew unless that was done an instant ago: what is asked for is not older than the asking.
func (w *watcher) fresh(ctx context.Context) {
	if w.replay {
		return
	}
	w.mu.Lock()
	last := w.at
	w.mu.Unlock()
	if time.Since(last) >= readFresh {
		_ = w.read(ctx)
	}
}

// read takes one reading.
func (w *watcher) read(ctx context.Context) error {
	w.reading.Lock()
	defer w.reading.Unlock()
	snap, err := w.src.Next(ctx)
	gone := errors.Is(err, segment.ErrEnded)
	next := 0
	if gone {
		next = source.Successor(w.command, w.pid, w.before)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err() // whoever asked has left: nothing is known about the process
	}
	w.err, w.ended, w.at = err, gone, time.Now()
	if next != 0 {
		w.next = next
	}
	if err != nil {
		return err
	}
	w.last = w.series.Next(snap)
	if w.at.Sub(w.point) >= every*9/10 { // a reading between two is no point
		w.point = w.at
		w.history.Add(pointOf(w.last, w.at, w.colours.of))
	}
	return nil
}

func (w *watcher) close() {
	if w.replay {
		return
	}
	w.stop()
	<-w.done
	w.src.Close()
}

func (w *watcher) touch() {
	w.mu.Lock()
	w.asked = time.Now()
	w.mu.Unlock()
}

func (w *watcher) unasked() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.asked)
}
