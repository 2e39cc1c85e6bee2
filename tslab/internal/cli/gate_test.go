package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
)

// keeping is a process that keeps objects in the ring, which two labels have made outside of their scopes.
func keeping(objects, byGet, byPost int) *snapshot.Snapshot {
	s := snapshot.New()
	set := func(r *snapshot.Row, pairs ...any) {
		for i := 0; i < len(pairs); i += 2 {
			m := metrics.Of(r.Section).Find(pairs[i].(string))
			if v, ok := pairs[i+1].(string); ok {
				r.SetText(m, v)
			} else {
				r.SetUint(m, uint64(pairs[i+1].(int)))
			}
		}
	}
	for range 3 {
		s.Append(snapshot.NewRow(metrics.Label))
	}
	s.Append(snapshot.NewRow(metrics.Epoch))
	set(s.Rows(metrics.Epoch)[0], "epoch_id", 0, "label_id", 0)
	set(s.Global(), "current_epoch", 0)
	set(s.Rows(metrics.Label)[0], "label", "(unlabeled)", "label_id", 0, "live_objects", objects, "live_bytes", 64*objects)
	set(s.Rows(metrics.Label)[1], "label", "GET", "label_id", 1, "outside_bytes", byGet)
	set(s.Rows(metrics.Label)[2], "label", "POST", "label_id", 2, "outside_bytes", byPost)
	return s
}

// What is kept outside of scopes is told with the labels that made it since the gate began.
func TestGateNamesMakers(t *testing.T) {
	g := gateState{}
	for round, s := range []*snapshot.Snapshot{keeping(100, 9000, 100), keeping(100, 9000, 400), keeping(101, 9100, 1000)} {
		now, err := g.read(s)
		if err != nil {
			t.Fatal(err)
		}
		worst := g.compare(now, uint(round))
		if (worst != nil) != (round == 2) {
			t.Fatalf("round %d: %+v", round, worst)
		}
		if worst != nil && (worst.Label != "(unlabeled)" || worst.Objects != 101 || worst.Makers != `made outside of scopes, most by "POST" (90 %), "GET" (10 %)`) {
			t.Errorf("%+v", worst)
		}
	}
}

// publishing is a process that publishes figures as a round of requests begins: at[k] is the round of the k-th ones, the first of 0.
type publishing struct {
	rounds string // a file, to which each round adds a byte
	at     []int
	of     []*snapshot.Snapshot
}

func (p *publishing) Name() string { return "pid 1" }
func (p *publishing) Close() error { return nil }

func (p *publishing) Next(context.Context) (*snapshot.Snapshot, error) {
	done, err := os.ReadFile(p.rounds)
	k := len(p.at) - 1
	for k > 0 && p.at[k] > len(done) {
		k--
	}
	return p.of[k], err
}

// The measure is of figures that are newer than the warm-up, and there are newer ones before the end; else nothing was judged, which is an error.
func TestGateWaitsForFigures(t *testing.T) {
	for _, c := range []struct {
		what    string
		at      []int // rounds at whose begin there are new figures
		objects []int
		news    time.Duration
		said    string
	}{
		{"figures of before the caches were filled", []int{0, 6, 9}, []int{0, 10, 10}, time.Hour, "None of 5 rounds leaves more than any before."},
		{"figures of the middle of the warm-up", []int{0, 2, 7, 14}, []int{0, 5, 10, 10}, time.Hour, "None of 7 rounds leaves more than any before."},
		{"a leak in the first figures after the measure", []int{0, 6, 9}, []int{0, 10, 11}, time.Hour, `"(unlabeled)" retains 11 objects (704 B) after round 3, up from at most 10 objects`},
		{"a leak in figures of after the last round", []int{0, 4, 40}, []int{0, 10, 11}, time.Hour, `"(unlabeled)" retains 11 objects (704 B) after round 36, `},
		{"figures that stand still from the begin", []int{0}, []int{3}, 0, "pid 1 has published no figures since the warm-up"},
		{"figures that stand still after the measure", []int{0, 4}, []int{3, 3}, 0, "pid 1 has published no figures since the warm-up"},
	} {
		p := &publishing{rounds: filepath.Join(t.TempDir(), "rounds"), at: c.at}
		if err := os.WriteFile(p.rounds, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for k, objects := range c.objects {
			s := keeping(objects, 0, 0)
			s.Document().SetUint(metrics.Of(metrics.Document).Find("uptime_ns"), uint64(1+k))
			p.of = append(p.of, s)
		}
		a, said := told(t)
		out := &bytes.Buffer{}
		a.out = bufio.NewWriter(out)
		err := a.gate(context.Background(), p, gateOptions{warmUp: 3, rounds: 5, news: c.news}, []string{"sh", "-c", `printf . >>"$0"`, p.rounds})
		a.out.Flush()
		got := out.String() + said.String()
		if err != nil && !errors.Is(err, errFinding) {
			got += err.Error()
		}
		if !strings.HasPrefix(got, c.said) || errors.Is(err, errFinding) != strings.HasPrefix(c.said, `"`) {
			t.Errorf("%s: %s; %v", c.what, got, err)
		}
	}
}
