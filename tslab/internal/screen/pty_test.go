package screen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"temporal-slab/tslab/internal/snapshot"
)

// terminal is one that the test itself is behind.
type terminal struct {
	master, slave *os.File
	mu            sync.Mutex
	shown         strings.Builder
}

func openTerminal(t *testing.T) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("skipped: no pseudo terminals here (%v)", err)
	}
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{master: master, slave: slave}
	// The slave stays open: what reads it (bubbletea) may look at its descriptor a last time after Run has returned.
	t.Cleanup(func() { master.Close() })
	x.resize(t, 80, 24)
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			if err != nil {
				return
			}
			x.mu.Lock()
			x.shown.Write(b[:n])
			x.mu.Unlock()
		}
	}()
	return x
}

func (x *terminal) resize(t *testing.T, w, h uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(x.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: w, Row: h}); err != nil {
		t.Fatal(err)
	}
}

func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.shown.String()
}

func (x *terminal) await(t *testing.T, want string) {
	t.Helper()
	if eventually(func() bool { return strings.Contains(x.text(), want) }) {
		return
	}
	t.Fatalf("the terminal never showed %q but %q", want, x.text())
}

func eventually(is func() bool) bool {
	for range 3600 {
		if is() {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

func (x *terminal) state(t *testing.T) unix.Termios {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(x.slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

// moments answers for ever, and panics when it is told to.
type moments struct {
	answers
	n     uint64
	panic bool
}

func (m *moments) Next(context.Context) (*snapshot.Snapshot, error) {
	m.n++
	if m.panic && m.n > 2 {
		panic("on purpose, to see the terminal restored")
	}
	return moment(m.n), nil
}

// However it ends, the terminal is as it was.
func TestTerminalIsRestored(t *testing.T) {
	for _, c := range []struct {
		how   string
		panic bool
		end   func(x *terminal, stop func())
	}{
		{"q", false, func(x *terminal, _ func()) { _, _ = x.master.WriteString("q") }},
		{"ctrl-c", false, func(x *terminal, _ func()) { _, _ = x.master.WriteString("\x03") }},
		{"SIGTERM", false, func(_ *terminal, stop func()) { stop() }},
		{"panic", true, func(*terminal, func()) {}},
	} {
		x := openTerminal(t)
		before := x.state(t)
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			done <- Run(ctx, Options{Source: &moments{panic: c.panic}, Interval: 100 * time.Millisecond, Tab: "labels", Color: true}, x.slave, x.slave)
		}()
		if !c.panic {
			x.await(t, "POST /orders")
			if x.state(t).Lflag == before.Lflag {
				t.Errorf("%s: the terminal was never raw", c.how)
			}
			x.resize(t, 40, 10)
		}
		c.end(x, stop)
		var err error
		select {
		case err = <-done:
		case <-time.After(180 * time.Second):
			t.Fatalf("%s: it does not end", c.how)
		}
		stop()
		if (err != nil) != c.panic {
			t.Errorf("%s: %v", c.how, err)
		}
		if after := x.state(t); after != before {
			t.Errorf("%s: the terminal was %+v and is %+v", c.how, before, after)
		}
		if !eventually(func() bool { // what was written last is read a little later
			text := x.text()
			return strings.Count(text, "\x1b[?1049h") == strings.Count(text, "\x1b[?1049l") &&
				strings.LastIndex(text, "\x1b[?25h") >= strings.LastIndex(text, "\x1b[?25l")
		}) {
			t.Errorf("%s: the other screen is left on, or the cursor off: %q", c.how, x.text())
		}
	}
}

// What fails before anything is shown leaves the terminal alone.
func TestFirstReadingFails(t *testing.T) {
	x := openTerminal(t)
	want := errors.New("nothing there")
	err := Run(context.Background(), Options{Source: &answers{err: want}, Interval: time.Second}, x.slave, x.slave)
	if !errors.Is(err, want) || x.text() != "" {
		t.Errorf("%v, %q", err, x.text())
	}
}
