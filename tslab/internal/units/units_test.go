package units_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/units"
)

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		units.Bytes(0): "0 B", units.Bytes(1023): "1023 B", units.Bytes(1536): "1.5 KiB", units.Bytes(1 << 20): "1.0 MiB",
		units.Bytes(1<<20 - 1): "1023.9 KiB", units.Bytes(math.MaxUint64): "15.9 EiB",
		units.Count(0): "0", units.Count(7): "7", units.Count(1.5): "1.50", units.Count(9999): "9999", units.Count(12345): "12.3k",
		units.Count(999_600): "1.00M", units.Count(1 << 64): "18.4E", units.Count(-3000): "-3000", units.Count(math.NaN()): "-",
		units.Count(math.Inf(1)): "-", units.Count(99_960): "100k",
		units.Duration(-1): "0 s", units.Duration(999): "999 ns", units.Duration(1500): "1.5 us", units.Duration(999_999): "999 us",
		units.Duration(59_999_999_999): "59 s", units.Duration(192 * time.Second): "3m12s", units.Duration(25 * time.Hour): "1d01h",
		units.Duration(math.MaxInt64): "106751d23h",
		units.Percent(1, 0):           "-", units.Percent(1, 8): "12.5 %",
		units.Label(""): "(unlabeled)", units.Label("a\x1b[31mb\u202e\nc\u0085"): `"a?[31mb??c?"`,
		units.Style{}.Uint(metrics.Bytes, 2048):                 "2.0 KiB",
		units.Style{Raw: true}.Uint(metrics.Bytes, 2048):        "2048",
		units.Style{}.Uint(metrics.Nanoseconds, math.MaxUint64): "292y",
		units.Style{}.Float(metrics.Seconds, 1e300):             "106751d23h",
		units.Style{}.Float(metrics.Bytes, -2048):               "-2.0 KiB",
		units.Style{}.Rate(metrics.Bytes, 1e30):                 "15.9 EiB/s",
		units.Style{}.Rate(metrics.Count, 12.34):                "12/s",
	} {
		if got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
	if t2 := units.Text(strings.Repeat("\u200b", 3)); t2 != "???" {
		t.Errorf("invisible characters: %q", t2)
	}
}
