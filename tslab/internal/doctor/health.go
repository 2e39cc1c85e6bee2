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

const (
	allocator verdict = iota
	ownLocks
	balanced
	scheduler
	hypervisor
)

var verdictWords = [...]string{
	allocator:  "allocator: the time is spent in it, not waiting for a processor; see 2 and 5",
	ownLocks:   "allocator: threads sleep for its locks longer than they run or wait for a processor",
	balanced:   "balanced: as much time on the processor as waiting for one",
	scheduler:  "scheduler: threads wait for a processor longer than they run",
	hypervisor: "scheduler or hypervisor: threads wait for a processor more than twice as long as they run",
}

// atLeast says whether a*x >= b*y, whatever the numbers.
func atLeast(a, x, b, y uint64) bool {
	h1, l1 := bits.Mul64(a, x)
	h2, l2 := bits.Mul64(b, y)
	return h1 > h2 || h1 == h2 && l1 >= l2
}

// judgeSamples: about equal is within a quarter.
func judgeSamples(wait, cpu, locks uint64) verdict {
	switch {
	case locks > wait && locks > cpu:
		return ownLocks
	case !atLeast(2, cpu, 1, wait):
		return hypervisor
	case atLeast(4, wait, 3, cpu) && atLeast(5, cpu, 4, wait):
		return balanced
	case wait > cpu:
		return scheduler
	}
	return allocator
}

func sampling(s *Section, snap *snapshot.Snapshot) {
	r := snap.One(metrics.Sampling)
	n := r.U("samples")
	if r.U("period") == 0 {
		s.say("Sampling: off. SlabOptions.sampling_period = 1024, or TSLAB_OPTIONS=sampling_period=1024, times one allocation in 1024.")
		return
	}
	if n == 0 {
		s.say("Sampling: one allocation in %d, none so far.", r.U("period"))
		return
	}
	wall, cpu, wait := r.U("wall_ns_sum"), r.U("cpu_ns_sum"), r.U("wait_ns_sum")
	slept := uint64(0) // neither work nor waiting for a processor: sleeping for locks
	if other := snapshot.Add(cpu, wait); wall > other {
		slept = wall - other
	}
	s.say("Sampling: %d samples, one allocation in %d; on average %d ns = cpu %d + wait %d + locks %d; longest %d ns; %d dropped (more cpu than wall)",
		n, r.U("period"), wall/n, cpu/n, wait/n, slept/n, r.U("max_wall_ns"), r.U("dropped"))
	putVerdict(s, n, wait, cpu, slept)
	if k := r.U("lock_samples"); k != 0 {
		s.say("Locks: %d samples; waited for %d ns on average, %d at most; held for %d ns, %d at most.", k,
			r.U("lock_wait_ns_sum")/k, r.U("lock_wait_ns_max"), r.U("lock_hold_ns_sum")/k, r.U("lock_hold_ns_max"))
	}
}

func putVerdict(s *Section, samples, wait, cpu, slept uint64) {
	if wait == 0 && cpu == 0 && slept == 0 {
		s.say("Verdict: none; the samples are shorter than the clocks can tell.")
		return
	}
	v := judgeSamples(wait, cpu, slept)
	s.say("Verdict: %s.", verdictWords[v])
	if samples < Thresholds.FewSamples {
		return
	}
	switch v {
	case ownLocks:
		s.action("", "look at 5 for the label whose threads wait; a system call under a lock that takes long "+
			"(see the holds below) points at the kernel: memory cgroup, swapping, or a tracer")
	case scheduler:
		s.action("", "run fewer busy threads than processors, or look for a CPU quota (cpu.stat, nr_throttled) "+
			"and for pinned threads")
	case hypervisor:
		s.action("", "look at the steal time of the machine (vmstat, column st), at CPU quotas, and at the run queue")
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
	tail := "; no free was repeated."
	if retries != 0 {
		rate := 0.0
		if frees != 0 {
			rate = float64(retries) / float64(frees)
		}
		tail = fmt.Sprintf("; %.4f retries per free: %s.", rate, retryHealth)
	}
	if total < Thresholds.FewLocks {
		s.say("Locks: %d acquisitions on record, too few to judge%s", total, tail)
	} else {
		s.say("Locks: %.1f %% of %d acquisitions had to wait: %s%s%s", percent(contended, total), total, lockHealth,
			mostUnder(snap, lockHealth), tail)
	}
	if total >= Thresholds.FewLocks && lockHealth == Act {
		s.action("", "locks are taken when slabs change hands and when phases end: longer phases, larger "+
			"slab_bytes and more warm_bytes take fewer")
	}
	if retryHealth == Act {
		s.action("", "threads free each other's objects of the same lines at the same time: free where the "+
			"objects were made, or release the phase as a whole")
	}
}

// mostUnder names the label that waits most.
func mostUnder(snap *snapshot.Snapshot, h Health) string {
	var worst *snapshot.Row
	for _, l := range snap.Rows(metrics.Label) {
		if worst == nil || l.U("lock_contended") > worst.U("lock_contended") {
			worst = l
		}
	}
	if h < Watch || worst == nil || worst.U("lock_contended") == 0 {
		return ""
	}
	return ", most under " + units.Label(worst.S("label"))
}

var causes = []struct{ key, advice string }{
	{"stale_handle", "handles were used after their object ended"},
	{"bad_handle", "values were freed that this allocator never issued as handles"},
	{"double_free", "objects were freed twice"},
	{"stale_free", "pointers were freed after their phase was released or their slab returned"},
	{"interior_pointer", "pointers into the middle of objects were freed"},
	{"foreign_pointer", "pointers of somebody else were freed here; slab_owns tells whose they are"},
	{"size_mismatch", "slab_free_sized was told more bytes than the object has"},
	{"bad_epoch", "epoch ids or eras were used that do not exist"},
	{"closed_epoch", "allocations named a phase that had ended; take the id anew for each phase"},
	{"bad_size", "sizes of 0, or beyond what fits into memory, were asked for"},
	{"domain_order", "scopes were left out of order, without entering, or destroyed while entered"},
	{"domain_stale", "a borrowed domain was entered after its epoch had moved on"},
	{"late_double_free", "objects were freed by two threads at once"},
	{"out_of_memory", "allocations found no memory: look at RLIMIT_AS, the memory cgroup, overcommit and reserve_bytes"},
	{"over_budget", "allocations exceeded a hard budget or max_bytes"},
}

func refusals(s *Section, snap *snapshot.Snapshot) {
	r := snap.One(metrics.Refusal)
	any := false
	for _, c := range causes {
		any = any || r.U(c.key) != 0
	}
	if any {
		s.say("Refusals:")
	} else {
		s.say("Refusals: nothing was refused.")
	}
	for _, c := range causes {
		if n := r.U(c.key); n != 0 {
			s.action(c.key, "%s %d: %s", c.key, n, c.advice)
		}
	}
	if n := r.U("retired_slabs"); n != 0 {
		s.say("%d slabs have used up their handle generations and rest; no harm.", n)
	}
	if n := r.U("bad_environment"); n != 0 {
		s.action("bad_environment", "%d words of TSLAB_OPTIONS are no options or out of range and were ignored; see docs/options.md", n)
	}
}

func labels(s *Section, snap *snapshot.Snapshot) {
	registry := snap.One(metrics.Registry)
	swallowed := snap.Total(metrics.Label, "swallowed")
	switch n := len(snap.Rows(metrics.Label)); {
	case n == 0:
		s.say("Labels: none in use.")
	case swallowed == 0:
		s.say("Labels: every label has a place (%d of %d ids in use).", registry.U("count"), registry.U("max_labels"))
	default:
		s.say("Labels: all %d ids are taken.", registry.U("max_labels"))
		s.action("(other)", `%d phases went to "(other)" because their label found no room: raise max_labels (to 4096 at `+
			"most), or take names out of labels that make them many, such as request numbers", swallowed)
	}
}
