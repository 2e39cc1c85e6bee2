package doctor_test

import (
	"strings"
	"testing"
	"time"

	"temporal-slab/tslab/internal/doctor"
	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/testdata"
)

// row is the first of a list, changed.
func change(s *snapshot.Snapshot, k metrics.Section, n int, pairs ...any) *snapshot.Snapshot {
	r := s.Rows(k)[n]
	for i := 0; i < len(pairs); i += 2 {
		m := metrics.Of(k).Find(pairs[i].(string))
		if v, ok := pairs[i+1].(string); ok {
			r.SetText(m, v)
		} else if m.Type == metrics.F64 {
			r.SetFloat(m, float64(pairs[i+1].(int)))
		} else {
			r.SetUint(m, uint64(pairs[i+1].(int)))
		}
	}
	return s
}

// told is a document of an allocator in which nothing leaks.
func told() *snapshot.Snapshot {
	s := snapshot.New()
	s.Append(snapshot.NewRow(metrics.Label))
	return change(s, metrics.Label, 0, "draining_objects", 0, "oldest_draining_ns", 0)
}

// label is one whose ended phases hold something.
func label(pairs ...any) *snapshot.Snapshot {
	s := told()
	r, set := s.Rows(metrics.Label)[0], func(key string, v ...uint64) {
		s.Rows(metrics.Label)[0].SetArray(metrics.Of(metrics.Label).Find(key), v)
	}
	ages := make([]uint64, 48)
	ages[35], ages[33] = 2, 1 // 34 to 68 s, 8.5 to 17 s
	r.SetArray(metrics.Of(metrics.Label).Find("draining_age_ns"), ages)
	set("worst_eras", 9, 8, 0)
	set("worst_bytes", 16384, 8192, 0)
	set("worst_objects", 3, 1, 0)
	set("worst_ages_ns", 60_000_000_000, 50_000_000_000, 0)
	base := []any{"label", "orders", "label_id", 4, "draining_phases", 3, "draining_objects", 5, "draining_bytes", 32768, "oldest_draining_ns", 60_000_000_000}
	return change(s, metrics.Label, 0, append(base, pairs...)...)
}

// expected is that label where all that drains is as it should be.
func expected(pairs ...any) *snapshot.Snapshot {
	base := []any{"objects_escaped", 40, "bytes_escaped", 4096, "phases_ended", 20, "expected_objects", 2, "expected_bytes", 64, "unexpected_phases", 0,
		"unexpected_draining_phases", 0, "unexpected_draining_objects", 0, "unexpected_draining_bytes", 0, "oldest_unexpected_ns", 0}
	return label(append(base, pairs...)...)
}

// aged is what a process published so long ago that is asked now.
func aged(s *snapshot.Snapshot, by time.Duration) *snapshot.Snapshot {
	s.Aged, s.Age = true, by
	return s
}

// phase is one of that label with a row of its own.
func phase(pairs ...any) *snapshot.Snapshot {
	s := label()
	s.Append(snapshot.NewRow(metrics.Phase))
	base := []any{"label", "orders", "label_id", 4, "state", 1, "live_objects", 5, "epoch_id", 3, "epoch_era", 9, "age_ns", 60_000_000_000, "rss_before_close", 4096}
	return change(s, metrics.Phase, 0, append(base, pairs...)...)
}

func class(pairs ...any) *snapshot.Snapshot {
	s := told()
	s.Append(snapshot.NewRow(metrics.Class))
	return change(s, metrics.Class, 0, append([]any{"object_size", 64, "slow_path_hits", 200}, pairs...)...)
}

func locks(fast, contended int) *snapshot.Snapshot {
	return class("slow_path_hits", 0, "lock_fast_acquire", fast, "lock_contended", contended)
}

func retries(n, frees int) *snapshot.Snapshot {
	return change(told(), metrics.Label, 0, "cas_retries", n, "objects_freed", frees)
}

func samples(n, wall, cpu, wait int) *snapshot.Snapshot {
	return change(told(), metrics.Sampling, 0, "period", 1024, "samples", n, "wall_ns_sum", wall, "cpu_ns_sum", cpu, "wait_ns_sum", wait)
}

func closing(before, after, given int) *snapshot.Snapshot {
	s := told()
	s.Append(snapshot.NewRow(metrics.Close))
	return change(s, metrics.Close, 0, "rss_before_close", before, "rss_after_close", after, "bytes_madvised", given)
}

// A verdict on each side of every threshold.
func TestVerdicts(t *testing.T) {
	const mib = 1 << 20
	many := label()
	for n := range 300 { // harmless and old, and all that have rows
		many.Append(snapshot.NewRow(metrics.Phase))
		change(many, metrics.Phase, n, "label", "sessions", "label_id", 1, "live_objects", 7, "age_ns", 3_600_000_000_000)
	}
	change(many, metrics.Document, 0, "phases_left_out", 3000)
	silent := label()
	silent.Append(snapshot.NewRow(metrics.Label)) // of a library that tells nothing of it
	for _, c := range []struct {
		snap    *snapshot.Snapshot
		want    string
		actions int
	}{
		{told(), "Leaks: none found: no ended phase of 60 s or more holds an object", 0},
		{snapshot.New(), "Leaks: unknown: what was read does not tell", 1},
		{silent, "Leaks: unknown: what was read does not tell", 2},
		{label(), `"orders" leaks 5 objects (32.0 KiB), the oldest for 60 s: slab_epoch_walk_era(a, 9, ...)`, 1},
		{label(), "Leaks: 5 objects, 32.0 KiB of slabs, in 3 ended phases of 1 label with some of 60 s or more.", 1},
		{label(), `1. "orders": 5 live in 3 phases that hold 32.0 KiB; the oldest 60 s, 2 at most of 60 s or more; ` +
			`largest: era 9 (16.0 KiB in 3 objects, 60 s), era 8 (8.0 KiB in 1 object, 50 s)`, 1},
		{many, `"orders" leaks 5 objects (32.0 KiB)`, 1},
		{label("oldest_draining_ns", 59_999_999_999), `Too young to judge: 5 objects, 32.0 KiB of slabs, most of it under "orders".`, 0},
		{label("draining_objects", 0), "Leaks: none found", 0},
		{expected(), "Leaks: none found: no ended phase of 60 s or more holds an object", 0},
		{expected(), `"orders": ended phases have let 40 objects (4.0 KiB) escape so far; still live: 5 in 3 phases, the oldest 60 s old; ` +
			`expected per phase: up to 2 objects with 64 B in total.`, 0},
		{expected("unexpected_phases", 3), `"orders": 3 of 20 ended phases let more escape than the expected 2 objects with 64 B in total`, 1},
		{expected("unexpected_draining_phases", 1, "unexpected_draining_objects", 3, "unexpected_draining_bytes", 16384,
			"oldest_unexpected_ns", 60_000_000_000), `"orders" leaks 3 objects (16.0 KiB), the oldest for 60 s`, 1},
		{expected("unexpected_draining_phases", 1, "unexpected_draining_objects", 3, "unexpected_draining_bytes", 16384,
			"oldest_unexpected_ns", 59_000_000_000), `Too young to judge: 3 objects, 16.0 KiB of slabs`, 0},
		{label("objects_escaped", 7), `"orders": ended phases have let 7 objects (0 B) escape so far; still live: 5 in 3 phases, the oldest 60 s old.`, 1},
		{label("objects_escaped", 7, "draining_objects", 0), `"orders": ended phases have let 7 objects (0 B) escape so far; none of them is live.`, 0},
		{aged(told(), 2*time.Second), "Leaks: none found: no ended phase", 0},
		{aged(told(), 5*time.Second), "nothing leaked 5 s ago, when the process published last: no ended phase of 60 s or more held an object.", 0},
		{aged(label("oldest_draining_ns", 10_000_000_000), 55*time.Second), `"orders" leaks 5 objects (32.0 KiB), the oldest for 65 s`, 1},
		{aged(label("oldest_draining_ns", 10_000_000_000), 45*time.Second), "Too young to judge: 5 objects", 0},
		{phase("live_objects", 0, "refcount", 2), `"orders" leaks`, 1},
		{phase("state", 0, "refcount", 2), `"orders" leaks`, 1},
		{phase("label_id", 5, "refcount", 2), `"orders" leaks`, 1},
		{phase("refcount", 2), "with 2 open references to its phases: look for the missing", 1},
		{phase("rss_before_close", 0), "was never closed after the ring advanced past it", 1},
		{phase("empty_slabs", 1), "1 of its slabs is empty", 1},
		{phase("rss_before_close", 0, "epoch_id", 1<<31), `"orders" leaks`, 1},
		{class("slow_path_epoch_closed", 101), "Fix the rotation", 1},
		{class("slow_path_epoch_closed", 100), "No cause prevails", 0},
		{class("slow_path_epoch_closed", 99, "slow_path_hits", 99), "closed 100.0 %", 0},
		{class("slow_path_cache_miss", 101, "new_slab_count", 4, "empty_slab_recycled", 2), "Growth: most hits", 0},
		{class("slow_path_cache_miss", 101, "new_slab_count", 4, "empty_slab_recycled", 1), "Larger cache", 0},
		{class("slow_path_cache_miss", 101, "object_size", 0), "Large objects have pages", 0},
		{class("current_partial_null", 101), "Contention or empty cache", 0},
		{class("current_partial_full", 101), "Slabs too small", 0},
		{locks(99, 0), "99 acquisitions on record, too few to judge; no free had to be retried.", 0},
		{locks(851, 149), "14.9 % of 1000 acquisitions had to wait: good", 0},
		{locks(850, 150), "normal", 0},
		{locks(800, 200), "watch it", 0},
		{locks(700, 300), "watch it", 0},
		{locks(699, 301), "had to wait: act", 1},
		{retries(9, 1000), "0.0090 retries per free: good", 0},
		{retries(10, 1000), "normal", 0},
		{retries(50, 1000), "watch it", 0},
		{retries(100, 1000), "per free: act", 1},
		{told(), "4. Sampling: off.", 0},
		{samples(0, 0, 0, 0), "one slow allocation in 1024, none so far", 0},
		{samples(100, 0, 0, 0), "Verdict: none; the samples are too short", 0},
		{samples(100, 1000, 800, 200), "Verdict: allocator: threads spend the time working in the allocator", 0},
		{samples(100, 3000, 800, 200), "threads wait for its locks longer", 1},
		{samples(100, 1000, 500, 500), "Verdict: balanced", 0},
		{samples(100, 1750, 1000, 750), "Verdict: balanced", 0},
		{samples(100, 1749, 1000, 749), "Verdict: allocator", 0},
		{samples(100, 2250, 1000, 1250), "Verdict: balanced", 0},
		{samples(100, 2251, 1000, 1251), "Verdict: scheduler: threads", 1},
		{samples(99, 2251, 1000, 1251), "Verdict: scheduler: threads", 0},
		{samples(100, 3000, 1000, 2000), "Verdict: scheduler: threads", 1},
		{samples(100, 3001, 1000, 2001), "scheduler or hypervisor", 1},
		{closing(10*mib, 10*mib, mib), "the kernel kept the pages", 1},
		{closing(10*mib, 10*mib-mib/10, mib), "(fell by 102.3 KiB)", 0},
		{closing(10*mib, 11*mib, mib), "(rose by 1.0 MiB) - the kernel kept the pages", 1},
		{closing(10*mib, 10*mib, mib-1), "1 close on record", 0},
		{change(told(), metrics.Global, 0, "total_madvise_failures", 3), "3 of the calls failed", 1},
		{change(told(), metrics.Global, 0, "total_repairs", 3), "ACTION: inconsistent lists of lines that were repaired: 3", 1},
		{change(told(), metrics.Refusal, 0, "double_free", 2), "ACTION: double_free 2: objects were freed twice", 1},
		{change(told(), metrics.Refusal, 0, "retired_slabs", 2), "2 slabs have used up", 0},
		{change(told(), metrics.Refusal, 0, "bad_environment", 2), "2 words of TSLAB_OPTIONS", 1},
		{change(told(), metrics.Label, 0, "swallowed", 4), `4 phases went to "(other)"`, 1},
	} {
		var b strings.Builder
		r := doctor.Examine(c.snap, doctor.LeakSeconds)
		r.Write(&b, func(s string) string { return s })
		if !strings.Contains(b.String(), c.want) {
			t.Errorf("no %q in:\n%s", c.want, b.String())
		}
		if n := len(r.Findings()); n != c.actions || strings.Count(b.String(), "ACTION: ") != n {
			t.Errorf("%q: %d findings instead of %d", c.want, n, c.actions)
		}
	}
}

func TestTheDocument(t *testing.T) {
	r := doctor.Examine(testdata.Snapshot(), 0)
	if len(r.Findings()) < 2 || !strings.Contains(r.Sections[0].Lines[0], "in 61 ended phases of 4 labels.") {
		t.Errorf("%+v", r.Findings())
	}
}
