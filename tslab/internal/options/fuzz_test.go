package options

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzIgnored: any text as TSLAB_OPTIONS. Each word that is no option is explained, on one line.
func FuzzIgnored(f *testing.F) {
	for _, text := range []string{"", "segment=1", "segmant=1,,ring_size=4g", "slab_bytes=3k,bump", "reserve_bytes=18446744073709551616", "=", "\xff=1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, words := Ignored(text), 0
		for word := range strings.SplitSeq(text, ",") {
			name, _, has := strings.Cut(word, "=")
			known := false
			for _, o := range table {
				known = known || o.name == name
			}
			if word != "" && (!known || !has) {
				words++
			}
		}
		if len(list) < words {
			t.Fatalf("%d explanations of %d words", len(list), words)
		}
		for _, line := range list {
			if strings.ContainsAny(line, "\n\r\x00\x1b") || !utf8.ValidString(line) {
				t.Fatalf("%q", line)
			}
		}
	})
}
