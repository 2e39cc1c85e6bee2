// Package units writes figures for people. Everything that came from a document is made harmless on the way: a label
// may hold whatever its program wanted, and a terminal obeys what it is sent.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"temporal-slab/tslab/internal/metrics"
)

// Bytes in the way of the library's own texts: "1.5 MiB", cut off rather than rounded.
func Bytes(v uint64) string {
	if v < 1024 {
		return strconv.FormatUint(v, 10) + " B"
	}
	unit := 0
	for ; v >= 1<<20; v >>= 10 {
		unit++
	}
	return fmt.Sprintf("%d.%d %ciB", v>>10, (v&1023)*10/1024, "KMGTPE"[unit])
}

// Count is a number with at most four digits: 999, 12.3k, 4.56M.
func Count(v float64) string {
	sign := ""
	if v < 0 {
		sign, v = "-", -v
	}
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case v < 10 && v != math.Trunc(v):
		return sign + strconv.FormatFloat(v, 'f', 2, 64)
	case v < 9999.5:
		return sign + strconv.FormatFloat(v, 'f', 0, 64)
	}
	for _, unit := range "kMGTPE" {
		v /= 1000
		if v < 999.5 || unit == 'E' {
			digits := 2
			if v >= 99.95 {
				digits = 0
			} else if v >= 9.995 {
				digits = 1
			}
			return sign + strconv.FormatFloat(v, 'f', digits, 64) + string(unit)
		}
	}
	return sign
}

// Duration has two units at most: 850 ns, 12 ms, 4.2 s, 3m12s, 5h07m, 12d03h.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < time.Millisecond:
		return trim(float64(d)/1e3) + " us"
	case d < time.Second:
		return trim(float64(d)/1e6) + " ms"
	case d < time.Minute:
		return trim(d.Seconds()) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// trim has one decimal below ten, and never rounds up into the next unit.
func trim(v float64) string {
	if v < 10 {
		return strings.TrimSuffix(strconv.FormatFloat(math.Floor(v*10)/10, 'f', 1, 64), ".0")
	}
	return strconv.FormatFloat(math.Floor(v), 'f', 0, 64)
}

// Percent of a whole; "-" of nothing.
func Percent(part, whole uint64) string {
	if whole == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64) + " %"
}

// Text is a text from a document on one line: control characters, and those that turn or hide what stands beside
// them, become question marks.
func Text(t string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || unicode.Is(unicode.Zl, c) || unicode.Is(unicode.Zp, c) {
			return '?'
		}
		return c
	}, t)
}

// Label is a label in a sentence.
func Label(t string) string {
	if t == "" {
		return "(unlabeled)"
	}
	return `"` + Text(t) + `"`
}

// Style is how figures are written: for people, or raw.
type Style struct {
	Raw bool // bytes, nanoseconds and counts to the last digit
}

// Uint writes a whole number in a unit of the table.
func (s Style) Uint(unit metrics.Unit, v uint64) string {
	switch {
	case s.Raw || unit == metrics.ID:
		return strconv.FormatUint(v, 10)
	case unit == metrics.Bytes:
		return Bytes(v)
	case unit == metrics.Nanoseconds && v <= math.MaxInt64:
		return Duration(time.Duration(v))
	case unit == metrics.Nanoseconds:
		return "292y"
	}
	return Count(float64(v))
}

// Float writes any number in a unit of the table.
func (s Style) Float(unit metrics.Unit, v float64) string {
	switch {
	case s.Raw:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case unit == metrics.Seconds:
		return Duration(seconds(v))
	case unit == metrics.Nanoseconds:
		return Duration(seconds(v / 1e9))
	case unit == metrics.Percent:
		return strconv.FormatFloat(v, 'f', 1, 64) + " %"
	case unit == metrics.Ratio:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case unit == metrics.MiB:
		return strconv.FormatFloat(v, 'f', 1, 64) + " MiB"
	case unit == metrics.Bytes:
		return signedBytes(v)
	}
	return Count(v)
}

// Rate writes so much of a unit in a second.
func (s Style) Rate(unit metrics.Unit, v float64) string {
	switch {
	case s.Raw:
		return strconv.FormatFloat(v, 'g', 6, 64)
	case unit == metrics.Bytes:
		return signedBytes(v) + "/s"
	case unit == metrics.Nanoseconds: // of time in a second: so many threads' worth
		return strconv.FormatFloat(v/1e7, 'f', 1, 64) + " %"
	}
	return Count(v) + "/s"
}

func seconds(v float64) time.Duration {
	if v >= float64(math.MaxInt64)/1e9 {
		return math.MaxInt64
	}
	return time.Duration(v * 1e9)
}

// Signed is a change in bytes, with its sign: "+1.5 MiB", "-12 B", "0 B".
func Signed(v float64) string {
	text := signedBytes(v)
	switch {
	case text == "0 B" || text == "-0 B":
		return "0 B"
	case v > 0:
		return "+" + text
	}
	return text
}

func signedBytes(v float64) string {
	if v < 0 {
		return "-" + signedBytes(-v)
	}
	if v >= math.MaxUint64 {
		return Bytes(math.MaxUint64)
	}
	return Bytes(uint64(v))
}

// Distance is how many letters have to be put in, taken out or changed.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for k := range row {
		row[k] = k
	}
	for i := 1; i <= len(a); i++ {
		before := row[0]
		row[0] = i
		for k := 1; k <= len(b); k++ {
			change := before
			if a[i-1] != b[k-1] {
				change++
			}
			before, row[k] = row[k], min(row[k]+1, row[k-1]+1, change)
		}
	}
	return row[len(b)]
}
