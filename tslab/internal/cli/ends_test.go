package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/source"
	"temporal-slab/tslab/internal/testdata"
	"temporal-slab/tslab/internal/view"
)

// steps is a source that gives one thing after another, and the last one for ever: a snapshot, or that the process has ended.
type steps struct {
	of []*snapshot.Snapshot // nil: has ended
	n  int
	do func(n int) // before a step is given
}

func (s *steps) Name() string { return "pid 1" }
func (s *steps) Close() error { return nil }

func (s *steps) Next(ctx context.Context) (*snapshot.Snapshot, error) {
	if s.do != nil {
		s.do(s.n)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	snap := s.of[min(s.n, len(s.of)-1)]
	s.n++
	if snap == nil {
		return nil, segment.ErrEnded
	}
	return snap, nil
}

// told is an app with what it says on standard error.
func told(t *testing.T) (*app, *bytes.Buffer) {
	t.Helper()
	said := &bytes.Buffer{}
	return &app{in: os.Stdin, stdout: os.Stdout, stderr: said, out: bufio.NewWriter(io.Discard), interval: time.Millisecond}, said
}

func one(t *testing.T) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Parse(strings.NewReader(testdata.Mixed))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Only what reads without end waits for another process of the name, and so only that may say that it does.
func TestWhatFollowsAName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	for line, follows := range map[string]bool{
		"watch --plain": true, "record -o " + file: true, "serve": true, "push --gateway http://127.0.0.1:1 --every 1s": true,
		"stats": false, "doctor": false, "export prometheus": false, "top --plain": false, "top --rates": false, "diff --for 1s": false,
		"push --gateway http://127.0.0.1:1": false, "gate": false,
	} {
		a, _ := told(t)
		args := append(strings.Fields(line), "--name", "no-program-of-this-name")
		if line == "gate" {
			args = append(args, "true")
		}
		root := a.root()
		root.SetArgs(args)
		if err := root.ExecuteContext(context.Background()); err == nil || !strings.Contains(err.Error(), "no-program-of-this-name") {
			t.Errorf("%s: %v", line, err)
		}
		if (a.choice.Again != nil) != follows {
			t.Errorf("%s: goes on with another process: %v", line, !follows)
		}
	}
}

func TestNetworkOfAnAddress(t *testing.T) {
	for listen, network := range map[string]string{"127.0.0.1:0": "tcp4", "0.0.0.0:9464": "tcp4", "[::]:9464": "tcp", "[::1]:9464": "tcp", "localhost:9464": "tcp", "[::ffff:127.0.0.1]:1": "tcp"} {
		if networkOf(listen) != network {
			t.Errorf("%s: %s", listen, networkOf(listen))
		}
	}
}

// A process that ends before the first reading is waited for, as has been said: the server answers, and serves the next one.
func TestServeWaits(t *testing.T) {
	a, _ := told(t)
	out, in := io.Pipe()
	a.out = bufio.NewWriter(in)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	src := &steps{of: []*snapshot.Snapshot{nil, one(t)}}
	ended := make(chan error, 1)
	go func() { ended <- a.serve(ctx, src, "127.0.0.1:0", 0) }()
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		lines <- line
	}()
	select {
	case err := <-ended:
		t.Fatalf("serve has ended: %v", err)
	case line := <-lines:
		_, url, _ := strings.Cut(strings.TrimSpace(line), " on ")
		answer, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if body, _ := io.ReadAll(answer.Body); !strings.Contains(string(body), "temporal_slab_exporter_up 1") {
			t.Errorf("the next process is not served: %s", body)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	other, _ := told(t) // what is wrong from the start is not waited for
	if err := other.serve(context.Background(), failing{}, "127.0.0.1:0", 0); err == nil || err.Error() != "no" {
		t.Error(err)
	}
}

type failing struct{ source.Source }

func (failing) Next(context.Context) (*snapshot.Snapshot, error) { return nil, errors.New("no") }

// A recording that waits for the next process is over when its time is, and begins with the first process that there is.
func TestRecordWaits(t *testing.T) {
	record := func(src source.Source, ctx context.Context, last time.Duration) string {
		a, said := told(t)
		var out bytes.Buffer
		a.out = bufio.NewWriter(&out)
		a.choice.Again = func(string) {}
		if err := a.record(ctx, src, filepath.Join(t.TempDir(), "x.rec"), 1<<20, last); err != nil {
			t.Error(err)
		}
		a.out.Flush()
		if !strings.Contains(said.String(), "recording pid 1") {
			t.Error(said)
		}
		return out.String()
	}
	if out := record(&steps{of: []*snapshot.Snapshot{one(t), nil}}, context.Background(), 100*time.Millisecond); !strings.HasPrefix(out, "the time is over: 1 reading in") {
		t.Error(out)
	}
	ctx, stop := context.WithCancel(context.Background())
	src := &steps{of: []*snapshot.Snapshot{nil, nil, one(t), nil}, do: func(n int) {
		if n == 6 {
			stop()
		}
	}}
	if out := record(src, ctx, 0); !strings.HasPrefix(out, "interrupted: 1 reading in") {
		t.Error(out)
	}
}

// Two readings of which the second never comes: the reason is told, once.
func TestTopEnds(t *testing.T) {
	l := view.Find("labels")
	a, said := told(t)
	err := a.top(context.Background(), &steps{of: []*snapshot.Snapshot{one(t), nil}}, l, view.Order{}, true)
	if !errors.Is(err, segment.ErrEnded) || said.Len() != 0 {
		t.Errorf("%v, %s", err, said)
	}
	a, said = told(t)
	ctx, stop := context.WithCancel(context.Background())
	err = a.top(ctx, &steps{of: []*snapshot.Snapshot{one(t)}, do: func(n int) {
		if n == 1 {
			stop()
		}
	}}, l, view.Order{}, true)
	if !errors.Is(err, context.Canceled) || said.Len() != 0 {
		t.Errorf("%v, %s", err, said)
	}
}

// A gate that ends early, by an interrupt or with the process, says why, and its command has ended before it.
func TestGateEnds(t *testing.T) {
	for _, interrupted := range []bool{false, true} {
		a, said := told(t)
		file := filepath.Join(t.TempDir(), "pid")
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		pid := 0
		src := &steps{of: []*snapshot.Snapshot{one(t), nil}, do: func(n int) {
			for n == 1 && pid == 0 { // the command runs
				text, _ := os.ReadFile(file)
				if line, whole := strings.CutSuffix(string(text), "\n"); whole {
					pid, _ = strconv.Atoi(line)
				}
			}
			if n == 1 && interrupted {
				stop()
			}
		}}
		err := a.gate(ctx, src, gateOptions{rounds: 1}, []string{"sh", "-c", "echo $$ >" + file + "; exec sleep 3000"})
		want := segment.ErrEnded
		if interrupted {
			want = context.Canceled
		}
		if !errors.Is(err, want) || strings.Contains(err.Error(), "signal") || said.Len() != 0 {
			t.Errorf("%v, %s", err, said)
		}
		if pid == 0 || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			t.Errorf("pid %d: the command outlasts the gate", pid)
		}
	}
}

// A profile from a writer that says nothing does not outlast an interrupt.
func TestProfileInterrupted(t *testing.T) {
	in, _ := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := profileStream(ctx, in); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
