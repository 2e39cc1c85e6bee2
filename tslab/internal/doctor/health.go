package doctor

// Sampling, locks, refusals and labels.

import (
	"fmt"
	"math/bits"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/units"
)

type verdict int

// atLeast says whether a*x >= b*y, whatever the numbers.
func atLeast(a, x, b, y uint64) bool {
	h1, l1 := bits.Mul64(a, x)
	h2, l2 := bits.Mul64(b, y)
	return h1 > h2 || h1 == h2 && l1 >= l2
}

func judgeSamples(wait, cpu, locks uint64) verdict {
	switch {
	case locks > wait && locks > cpu:
		return verdictLocks
	case !atLeast(WaitsLong, cpu, 1, wait):
		return verdictHypervisor
	case atLeast(EqualPart, wait, EqualPart-1, cpu) && atLeast(EqualPart+1, cpu, EqualPart, wait):
		return verdictBalanced
	case wait > cpu:
		return verdictScheduler
	}
	return verdictAllocator
}

func sampling(s *Section, snap *snapshot.Snapshot) {
	r := snap.One(metrics.Sampling)
	n := r.U("samples")
	if r.U("period") == 0 {
		s.say(saySamplingOff)
		return
	}
	if n == 0 {
		s.say(saySamplingNone, r.U("period"))
		return
	}
	wall, cpu, wait := r.U("wall_ns_sum"), r.U("cpu_ns_sum"), r.U("wait_ns_sum")
	slept := uint64(0) // neither work nor waiting for a processor: sleeping for locks
	if other := snapshot.Add(cpu, wait); wall > other {
		slept = wall - other
	}
	s.say(saySampling, n, r.U("period"), wall/n, cpu/n, wait/n, slept/n,
		r.U("max_wall_ns"), r.U("dropped"))
	putVerdict(s, n, wait, cpu, slept)
	if k := r.U("lock_samples"); k != 0 {
		s.say(saySampledLocks, k, r.U("lock_wait_ns_sum")/k, r.U("lock_wait_ns_max"), r.U("lock_hold_ns_sum")/k,
			r.U("lock_hold_ns_max"))
	}
}

func putVerdict(s *Section, samples, wait, cpu, slept uint64) {
	if wait == 0 && cpu == 0 && slept == 0 {
		s.say(sayVerdictNone)
		return
	}
	v := judgeSamples(wait, cpu, slept)
	s.say(sayVerdict, verdictWords[v])
	if samples < FewSamples {
		return
	}
	switch v {
	case verdictLocks:
		s.action("", sayVerdictLocks)
	case verdictScheduler:
		s.action("", sayVerdictScheduler)
	case verdictHypervisor:
		s.action("", sayVerdictHypervisor)
	}
}

// Locks counts lock acquisitions: by class, or by label when classes have none.
func Locks(snap *snapshot.Snapshot) (fast, contended uint64) {
	for _, k := range []metrics.Section{metrics.Class, metrics.Label} {
		fast, contended = snap.Total(k, "lock_fast_acquire"), snap.Total(k, "lock_contended")
		if snapshot.Add(fast, contended) != 0 {
			return
		}
	}
	return
}

func locks(s *Section, snap *snapshot.Snapshot) {
	fast, contended := Locks(snap)
	total := snapshot.Add(fast, contended)
	retries, frees := snap.Total(metrics.Label, "cas_retries"), snap.Total(metrics.Label, "objects_freed")
	retryHealth, lockHealth := RetryHealth(retries, frees), LockHealth(contended, total)
	tail := sayRetriesNone
	if retries != 0 {
		rate := 0.0
		if frees != 0 {
			rate = float64(retries) / float64(frees)
		}
		tail = fmt.Sprintf(sayRetries, rate, retryHealth)
	}
	if total < FewLocks {
		s.say(sayLocksFew+"%s", total, tail)
	} else {
		s.say(sayLocks+"%s%s", percent(contended, total), total, lockHealth, mostUnder(snap, lockHealth), tail)
	}
	if total >= FewLocks && lockHealth == Act {
		s.action("", sayLocksAct)
	}
	if retryHealth == Act {
		s.action("", sayRetriesAct)
	}
}

// mostUnder names the label that waits most.
func mostUnder(snap *snapshot.Snapshot, h Health) string {
	worst := labelWithMost(snap, "lock_contended")
	if h < Watch || worst == nil {
		return ""
	}
	return fmt.Sprintf(sayLocksMost, units.Label(worst.S("label")))
}

// labelWithMost is the row of the label with the largest figure; nil where none is above 0.
func labelWithMost(snap *snapshot.Snapshot, key string) *snapshot.Row {
	var most *snapshot.Row
	for _, l := range snap.Rows(metrics.Label) {
		if n := l.F(key); n > 0 && (most == nil || n > most.F(key)) {
			most = l
		}
	}
	return most
}

func refusals(s *Section, snap *snapshot.Snapshot) {
	r := snap.One(metrics.Refusal)
	any := false
	for _, c := range causes {
		any = any || r.U(c.key) != 0
	}
	if any {
		s.say(sayRefusals)
	} else {
		s.say(sayRefusalsNone)
	}
	for _, c := range causes {
		if n := r.U(c.key); n != 0 {
			s.action(c.key, sayRefusal, c.key, n, c.advice, under(snap, c.key))
		}
	}
	if n := r.U("retired_slabs"); n != 0 {
		s.say(sayRetired, n)
	}
	if n := r.U("bad_environment"); n != 0 {
		s.action("bad_environment", sayBadEnvironment, n)
		for _, w := range snap.Ignored {
			s.say("%s", w)
		}
	}
}

// under says under which label budgets refuse most.
func under(snap *snapshot.Snapshot, cause string) string {
	most := MostRefused(snap)
	if cause != "over_budget" || most == nil {
		return ""
	}
	return fmt.Sprintf(sayRefusedMost, units.Label(most.S("label")), most.U("budget_refusals"))
}

// MostRefused is the row of the label under which budgets refuse most; nil where none refuses.
func MostRefused(snap *snapshot.Snapshot) *snapshot.Row {
	return labelWithMost(snap, "budget_refusals")
}

func labels(s *Section, snap *snapshot.Snapshot) {
	registry := snap.One(metrics.Registry)
	swallowed := snap.Total(metrics.Label, "swallowed")
	switch n := len(snap.Rows(metrics.Label)); {
	case n == 0:
		s.say(sayLabelsNone)
	case swallowed == 0 && snap.Left(metrics.Label) != 0:
		s.say("Labels: %d of %d ids are in use; %d labels have no row in the segment, and (rest) is their sum.", registry.U("count"),
			registry.U("max_labels"), snap.Left(metrics.Label))
	case swallowed == 0:
		s.say(sayLabels, registry.U("count"), registry.U("max_labels"))
	default:
		s.say(sayLabelsFull, registry.U("max_labels"))
		s.action("(other)", saySwallowed, swallowed)
	}
}
