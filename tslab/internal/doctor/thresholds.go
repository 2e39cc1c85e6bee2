package doctor

import (
	"time"

	"temporal-slab/tslab/internal/rates"
)

// Thresholds are every figure a verdict hangs on. They are those of the library's own doctor (src/stats/doctor.c,
// doctor.h, health.c, diagnose.c); a test compares the two.
var Thresholds = struct {
	LeakSeconds  uint64 // an ended phase that holds objects so long leaks
	Rows         int    // shown of leaks and classes
	ClosesShown  int
	FewHits      uint64        // slow paths of a class below which nothing is advised
	FewSamples   uint64        // sampled allocations below which a verdict is a hint
	FewLocks     uint64        // acquisitions below which nothing is judged
	KeptMinBytes uint64        // given back by a close: below, other threads move the resident size as much
	KeptShare    uint64        // the kernel kept the pages when RSS fell by less than one in so many
	Prevails     float64       // percent: a cause of the slow path with more is the cause
	WarmShare    uint64        // percent of slabs that came warm, from which misses are growth
	Stale        time.Duration // figures of a process that are older may miss what has happened since
	LockPercent  [3]float64    // below: good, below: normal, up to: watch it; above: act
	RetryRate    [3]float64    // below: good, below: normal, below: watch it; else: act
}{
	LeakSeconds: 60, Rows: 10, ClosesShown: 8, FewHits: 100, FewSamples: 100, FewLocks: 100,
	Stale: rates.Fresh, KeptMinBytes: 1 << 20, KeptShare: 10, Prevails: 50, WarmShare: 50,
	LockPercent: [3]float64{15, 20, 30}, RetryRate: [3]float64{0.01, 0.05, 0.10},
}

// Health of a rate.
type Health int

const (
	Good Health = iota
	Normal
	Watch
	Act
)

var healthWords = [...]string{"good", "normal", "watch it", "act"}

func (h Health) String() string { return healthWords[h] }

// LockHealth judges the share of lock acquisitions that had to wait.
func LockHealth(contended, total uint64) Health {
	pct := percent(contended, total)
	t := Thresholds.LockPercent
	switch {
	case pct < t[0]:
		return Good
	case pct < t[1]:
		return Normal
	case pct <= t[2]:
		return Watch
	}
	return Act
}

// RetryHealth judges repeated compare-exchanges an operation.
func RetryHealth(retries, operations uint64) Health {
	rate := 0.0
	if operations != 0 {
		rate = float64(retries) / float64(operations)
	}
	for h, limit := range Thresholds.RetryRate {
		if rate < limit {
			return Health(h)
		}
	}
	return Act
}

func percent(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}
