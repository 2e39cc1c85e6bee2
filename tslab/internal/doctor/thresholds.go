package doctor

import "temporal-slab/tslab/internal/rates"

// Stale is the age from which figures of a process may miss what has happened since. All other thresholds are the
// library's: words.go.
const Stale = rates.Fresh

// Health of a rate.
type Health int

func (h Health) String() string { return healthWords[h] }

// LockHealth judges the share of lock acquisitions that had to wait.
func LockHealth(contended, total uint64) Health {
	switch pct := percent(contended, total); {
	case pct < LockGood:
		return Good
	case pct < LockNormal:
		return Normal
	case pct <= LockWatch:
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
	switch {
	case rate < RetryGood:
		return Good
	case rate < RetryNormal:
		return Normal
	case rate < RetryWatch:
		return Watch
	}
	return Act
}

func percent(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * min(1, float64(part)/float64(whole)) // what is read one after the other may contradict itself
}
