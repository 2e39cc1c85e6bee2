// Package options reads TSLAB_OPTIONS as the library does, and explains the words that it ignores.
package options

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

type option struct {
	name        string
	least, most uint64
}

const wordMost = 40 // bytes of a word that are shown, as in the library

// Ignored explains each word of the text that the library ignores: "segmant=1 is no option: segment?".
func Ignored(text string) []string {
	var list []string
	for word := range strings.SplitSeq(text, ",") {
		if s := explain(word); word != "" && s != "" {
			list = append(list, s)
		}
	}
	return list
}

// OfProcess explains the words that a process ignores in the environment it was started with. Nothing where that cannot
// be read.
func OfProcess(pid int) []string {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil
	}
	for entry := range strings.SplitSeq(string(environ), "\x00") {
		if text, ok := strings.CutPrefix(entry, "TSLAB_OPTIONS="); ok {
			return Ignored(text)
		}
	}
	return nil
}

func explain(word string) string {
	name, value, has := strings.Cut(word, "=")
	for _, o := range table {
		if o.name != name {
			continue
		}
		pow2 := name == "slab_bytes"
		v, ok := number(value)
		if has && ok && (v == 0 || v >= o.least && v <= o.most && (!pow2 || v&(v-1) == 0)) { // 0: the default
			return ""
		}
		text := fmt.Sprintf("%s is not a number within %d..%d", shown(word), o.least, o.most)
		if pow2 {
			text += ", a power of two"
		}
		return text
	}
	if near := nearest(name); near != "" {
		return fmt.Sprintf("%s is no option: %s?", shown(word), near)
	}
	return shown(word) + " is no option"
}

func shown(word string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return '?'
		}
		return r
	}, word[:min(len(word), wordMost)])
}

// number is decimal; sizes take k, m and g, in either case.
func number(text string) (uint64, bool) {
	if len(text) >= 24 {
		return 0, false
	}
	shift := 0
	for suffix, bits := range map[string]int{"k": 10, "m": 20, "g": 30} {
		if digits, ok := strings.CutSuffix(strings.ToLower(text), suffix); ok {
			text, shift = digits, bits
			break
		}
	}
	v, err := strconv.ParseUint(text, 10, 64)
	return v << shift, err == nil && v<<shift>>shift == v
}

// nearest is the option that the word is most like, by the rule of the library (src/api/options.c).
func nearest(word string) string {
	if len(word) < 3 || len(word) > wordMost {
		return ""
	}
	name, least := "", 2+len(word)/3
	for _, o := range table {
		d := 1
		if len(o.name) <= len(word) || !strings.HasPrefix(o.name, word) {
			d = distance(word, o.name)
		}
		if d < least {
			name, least = o.name, d
		}
	}
	return name
}

// distance is how many letters have to be inserted, dropped or replaced until the word is the name.
func distance(word, name string) int {
	word = strings.ReplaceAll(strings.ToLower(word), "-", "_")
	row := make([]int, len(word)+1)
	for i := range row {
		row[i] = i
	}
	for n := range len(name) {
		corner := row[0]
		row[0]++
		for i := 1; i < len(row); i++ {
			same := corner
			if word[i-1] != name[n] {
				same++
			}
			corner = row[i]
			row[i] = min(same, row[i]+1, row[i-1]+1)
		}
	}
	return row[len(word)]
}
