package snapshot

// A pull parser for JSON from strangers. It never holds more than one text or number of the document, and it has a
// limit for everything that could grow: bytes, nesting, texts, numbers. Every error says at which byte.

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	maxDepth  = 32
	maxText   = 64 << 10
	maxNumber = 128
)

// MaxBytes is how long a document may be. One of a hundred thousand phases has some 50 MB.
const MaxBytes = 256 << 20

type scanner struct {
	in    *bufio.Reader
	at    int64 // bytes taken
	start int64 // of the document
	depth int
	limit int64
}

func newScanner(r io.Reader, limit int64) *scanner {
	return &scanner{in: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

func (s *scanner) fail(format string, args ...any) error {
	return fmt.Errorf("%s at byte %d", fmt.Sprintf(format, args...), s.at)
}

// take reads a byte; io.ErrUnexpectedEOF at the end.
func (s *scanner) take() (byte, error) {
	if s.at-s.start >= s.limit {
		return 0, fmt.Errorf("the document is longer than %d MiB", s.limit>>20)
	}
	c, err := s.in.ReadByte()
	if err != nil {
		return 0, s.broken(err)
	}
	s.at++
	return c, nil
}

func (s *scanner) broken(err error) error {
	if errors.Is(err, io.EOF) {
		if s.at == 0 {
			return errors.New("nothing there: an empty input is no JSON document")
		}
		return s.fail("the document breaks off")
	}
	return err
}

// peek skips white space and shows the next byte.
func (s *scanner) peek() (byte, error) {
	for {
		c, err := s.take()
		if err != nil {
			return 0, err
		}
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			s.back()
			return c, nil
		}
	}
}

// back gives the byte just taken back; it is always there to be given back.
func (s *scanner) back() {
	_ = s.in.UnreadByte()
	s.at--
}

func (s *scanner) expect(want byte) error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	if c != want {
		return s.fail("'%s' instead of '%c'", printable(c), want)
	}
	_, err = s.take()
	return err
}

func printable(c byte) string {
	if c < 0x20 || c >= 0x7f {
		return fmt.Sprintf("\\x%02x", c)
	}
	return string(c)
}

// more says whether another element follows in a list or object that ends with `end`.
func (s *scanner) more(first bool, end byte) (bool, error) {
	c, err := s.peek()
	if err != nil {
		return false, err
	}
	if c == end {
		_, err = s.take()
		return false, err
	}
	if first {
		return true, nil
	}
	return true, s.expect(',')
}

func (s *scanner) enter() error {
	if s.depth++; s.depth > maxDepth {
		return s.fail("nested deeper than %d", maxDepth)
	}
	return nil
}

// object calls fn for each member; fn has to read its value.
func (s *scanner) object(fn func(key string) error) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := s.more(first, '}')
		if err != nil {
			return err
		}
		if !more {
			s.depth--
			return nil
		}
		key, err := s.text()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		if err := fn(key); err != nil {
			return err
		}
	}
}

// array calls fn for each element; fn has to read it.
func (s *scanner) array(fn func(i int) error) error {
	if err := s.expect('['); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	for i := 0; ; i++ {
		more, err := s.more(i == 0, ']')
		if err != nil {
			return err
		}
		if !more {
			s.depth--
			return nil
		}
		if err := fn(i); err != nil {
			return err
		}
	}
}

func (s *scanner) text() (string, error) {
	if err := s.expect('"'); err != nil {
		return "", err
	}
	var b strings.Builder
	for {
		c, err := s.take()
		if err != nil {
			return "", err
		}
		switch {
		case c == '"':
			return strings.ToValidUTF8(b.String(), "\uFFFD"), nil
		case c < 0x20:
			return "", s.fail("a control character in a text")
		case c == '\\':
			if err := s.escape(&b); err != nil {
				return "", err
			}
		default:
			b.WriteByte(c)
		}
		if b.Len() > maxText {
			return "", s.fail("a text longer than %d KiB", maxText>>10)
		}
	}
}

func (s *scanner) escape(b *strings.Builder) error {
	c, err := s.take()
	if err != nil {
		return err
	}
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if i := strings.IndexByte(from, c); i >= 0 {
		b.WriteByte(to[i])
		return nil
	}
	if c != 'u' {
		return s.fail("an unknown escape '\\%s'", printable(c))
	}
	r, err := s.hex()
	if err != nil {
		return err
	}
	for utf16.IsSurrogate(r) { // the second half has to follow
		next, err := s.in.Peek(2)
		if err != nil || next[0] != '\\' || next[1] != 'u' {
			r = utf8.RuneError
			break
		}
		_, _ = s.take()
		_, _ = s.take()
		second, err := s.hex()
		if err != nil {
			return err
		}
		if both := utf16.DecodeRune(r, second); both != utf8.RuneError {
			r = both
			break
		}
		b.WriteRune(utf8.RuneError)
		r = second
	}
	b.WriteRune(r)
	return nil
}

func (s *scanner) hex() (rune, error) {
	var r rune
	for range 4 {
		c, err := s.take()
		if err != nil {
			return 0, err
		}
		d := strings.IndexByte("0123456789abcdef", c|0x20)
		if d < 0 || (c < '0') {
			return 0, s.fail("an escape that is not \\uXXXX")
		}
		r = r<<4 | rune(d)
	}
	return r, nil
}

// number is the text of a number as JSON has it.
func (s *scanner) number() (string, error) {
	var b strings.Builder
	if _, err := s.peek(); err != nil {
		return "", err
	}
	for {
		c, err := s.take()
		if err != nil {
			return "", err
		}
		if !strings.ContainsRune("0123456789+-.eE", rune(c)) {
			s.back()
			break
		}
		b.WriteByte(c)
		if b.Len() > maxNumber {
			return "", s.fail("a number of more than %d digits", maxNumber)
		}
	}
	if !isNumber(b.String()) {
		return "", s.fail("'%s' is no number", b.String())
	}
	return b.String(), nil
}

// isNumber holds what JSON allows: -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
func isNumber(t string) bool {
	digits := func() int {
		n := 0
		for n < len(t) && t[n] >= '0' && t[n] <= '9' {
			n++
		}
		t = t[n:]
		return n
	}
	t = strings.TrimPrefix(t, "-")
	leadingZero := strings.HasPrefix(t, "0")
	if n := digits(); n == 0 || (leadingZero && n > 1) {
		return false
	}
	if strings.HasPrefix(t, ".") {
		t = t[1:]
		if digits() == 0 {
			return false
		}
	}
	if strings.HasPrefix(t, "e") || strings.HasPrefix(t, "E") {
		t = t[1:]
		if strings.HasPrefix(t, "+") || strings.HasPrefix(t, "-") {
			t = t[1:]
		}
		if digits() == 0 {
			return false
		}
	}
	return t == ""
}

// word reads true, false or null.
func (s *scanner) word() (string, error) {
	c, err := s.peek()
	if err != nil {
		return "", err
	}
	for _, w := range []string{"true", "false", "null"} {
		if w[0] != c {
			continue
		}
		for i := range len(w) {
			if c, err = s.take(); err != nil {
				return "", err
			}
			if c != w[i] {
				return "", s.fail("a word that is not %s", w)
			}
		}
		return w, nil
	}
	return "", s.fail("'%s' where a value was expected", printable(c))
}

// skip reads any value and forgets it.
func (s *scanner) skip() error {
	c, err := s.peek()
	switch {
	case err != nil:
		return err
	case c == '{':
		return s.object(func(string) error { return s.skip() })
	case c == '[':
		return s.array(func(int) error { return s.skip() })
	case c == '"':
		_, err = s.text()
	case c == '-' || (c >= '0' && c <= '9'):
		_, err = s.number()
	default:
		_, err = s.word()
	}
	return err
}

// rest reports whether only white space is left; what the reader says instead is an error.
func (s *scanner) rest() (bool, error) {
	for n := int64(0); ; n++ {
		c, err := s.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		s.at++
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			s.back()
			return false, nil
		}
		if n > s.limit {
			return false, errors.New("nothing but white space after the document")
		}
	}
}
