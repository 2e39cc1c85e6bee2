package doctor

import "strings"

// Singular writes "1 object" where a text says "1 objects", but for what stands in quotes, as labels do.
func Singular(text string) string {
	var out strings.Builder
	quoted := false
	for at := 0; at < len(text); at++ {
		c := text[at]
		out.WriteByte(c)
		if c == '"' {
			quoted = !quoted
		}
		if quoted || c != '1' || !strings.HasPrefix(text[at+1:], " ") || (at > 0 && strings.IndexByte("0123456789.,", text[at-1]) >= 0) {
			continue
		}
		rest := text[at+2:]
		for _, n := range nouns {
			after := strings.TrimPrefix(rest, n.many)
			if len(after) == len(rest) || (after != "" && after[0] >= 'a' && after[0] <= 'z') {
				continue
			}
			out.WriteString(" " + n.one)
			at += 1 + len(n.many)
			break
		}
	}
	return out.String()
}
