package units

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzText: any text of a document, such as a label, stays on its line and moves no cursor.
func FuzzText(f *testing.F) {
	for _, text := range []string{"", "GET /users", "a\nb", "\x1b[2J", "\u202e", "\u2028", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out := Text(text)
		if !utf8.ValidString(out) || strings.ContainsFunc(out, unicode.IsControl) || utf8.RuneCountInString(out) != utf8.RuneCountInString(text) {
			t.Fatalf("%q is %q", text, out)
		}
		if Label(text) == "" {
			t.Fatal("no label")
		}
	})
}
