package rates_test

import (
	"fmt"
	"testing"
	"time"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/rates"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/testdata"
)

const second = 1_000_000_000

func at(pid, stamp, uptime, hits uint64) *snapshot.Snapshot {
	s := testdata.Snapshot()
	d, g := s.Document(), s.Global()
	set := func(r *snapshot.Row, key string, v uint64) { r.SetUint(metrics.Of(r.Section).Find(key), v) }
	set(d, "pid", pid)
	set(d, "timestamp_ns", stamp)
	set(d, "uptime_ns", uptime)
	set(g, "total_slow_path_hits", hits)
	return s
}

func TestRates(t *testing.T) {
	const t0, up = 1_700_000_000 * second, 100 * second
	hits := metrics.Of(metrics.Global).Find("total_slow_path_hits")
	for _, c := range []struct {
		what      string
		a, b      *snapshot.Snapshot
		want      float64
		can, open bool // a rate of this counter; of any
	}{
		{"two seconds", at(1, t0, up, 100), at(1, t0+2*second, up+2*second, 300), 100, true, true},
		{"nothing happened", at(1, t0, up, 100), at(1, t0+second, up+second, 100), 0, true, true},
		{"counter fell", at(1, t0, up, 100), at(1, t0+second, up+second, 99), 0, false, true},
		{"to the top", at(1, t0, up, 0), at(1, t0+second, up+second, 1<<64-1), 1 << 64, true, true},
		{"first reading", nil, at(1, t0, up, 100), 0, false, false},
		{"the same reading", at(1, t0, up, 100), at(1, t0, up, 100), 0, false, false},
		{"another process", at(1, t0, up, 100), at(2, t0+second, up+second, 300), 0, false, false},
		{"restarted", at(1, t0, up, 100), at(1, t0+second, second/2, 300), 0, false, false},
		{"restarted, older than before", at(1, t0, second, 100), at(1, t0+60*second, 50*second, 300), 0, false, false},
		{"clock set forward", at(1, t0, up, 100), at(1, t0+3600*second, up+second, 300), 0, false, false},
		{"clock set back", at(1, t0, up, 100), at(1, t0-3600*second, up+second, 300), 0, false, false},
		{"clock trimmed", at(1, t0, up, 100), at(1, t0+second*15/10, up+second, 300), 200, true, true},
		{"an instant", at(1, t0, up, 100), at(1, t0+1000, up+1000, 300), 0, false, false},
	} {
		i := rates.Between(c.a, c.b)
		v, ok := i.Rate(c.b.Global(), hits)
		if ok != c.can || (ok && v != c.want) {
			t.Errorf("%s: rate %v %v", c.what, v, ok)
		}
		if (i.Why == "") != c.open || (i.Seconds > 0) != c.open {
			t.Errorf("%s: interval %v, %q", c.what, i.Seconds, i.Why)
		}
	}
}

// Rates lie between publications: one that is read again changes nothing, until it is too old to tell of now.
func TestSeries(t *testing.T) {
	const t0, up = 1_700_000_000 * second, 100 * second
	hits := metrics.Of(metrics.Global).Find("total_slow_path_hits")
	aged := func(s *snapshot.Snapshot, age time.Duration) *snapshot.Snapshot {
		s.Aged, s.Age = true, age
		return s
	}
	var s rates.Series
	for n, c := range []struct {
		snap *snapshot.Snapshot
		want float64 // -1: none
		why  string
	}{
		{aged(at(1, t0, up, 100), 0), -1, "first reading"},
		{aged(at(1, t0, up, 100), second), -1, "no new numbers"},
		{aged(at(1, t0+2*second, up+2*second, 300), 0), 100, ""},
		{aged(at(1, t0+2*second, up+2*second, 300), second), 100, ""},
		{aged(at(1, t0+2*second, up+2*second, 300), 4*second), -1, "no new numbers for 4 s"},
		{aged(at(1, t0+12*second, up+12*second, 1300), 0), 100, ""},
		{aged(at(2, t0+13*second, up+13*second, 1300), 0), -1, "another process (pid 1, then 2)"},
		{aged(at(2, t0+14*second, up+14*second, 1350), 0), 50, ""},
	} {
		i := s.Next(c.snap)
		v, ok := i.Rate(i.To.Global(), hits)
		if ok != (c.want >= 0) || ok && v != c.want || i.Why != c.why {
			t.Errorf("reading %d: %v %v %q", n, v, ok, i.Why)
		}
	}
}

func TestGaugesAndNewRows(t *testing.T) {
	const t0 = 1_700_000_000 * second
	a, b := at(1, t0, second, 0), at(1, t0+second, 2*second, 0)
	i := rates.Between(a, b)
	fell := func(s *snapshot.Snapshot) uint64 {
		if s == a {
			return 5
		}
		return 3
	}
	if v, ok := i.Change(fell); !ok || v != -2 {
		t.Errorf("a gauge that fell: %v %v", v, ok)
	}
	if _, ok := i.Rate(b.Global(), metrics.Of(metrics.Global).Find("live_bytes")); ok {
		t.Error("a gauge has a rate")
	}
	l := snapshot.NewRow(metrics.Label)
	m := metrics.Of(metrics.Label).Find("objects_allocated")
	l.SetUint(metrics.Of(metrics.Label).Find("label_id"), 77)
	l.SetText(metrics.Of(metrics.Label).Find("label"), "new")
	l.SetUint(m, 40)
	b.Append(l)
	if v, ok := i.Rate(l, m); !ok || v != 40 {
		t.Errorf("a new row: %v %v", v, ok)
	}
	if v := fmt.Sprint(b.Total(metrics.Label, "objects_allocated") - a.Total(metrics.Label, "objects_allocated")); v != "40" {
		t.Errorf("total grew by %s", v)
	}
}
