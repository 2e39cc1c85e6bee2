package cli

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestErrorsHaveNoGoInThem(t *testing.T) {
	to := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: to, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("http://127.0.0.1:9/x: %w", refused), "http://127.0.0.1:9/x: cannot connect to 127.0.0.1:9: connection refused"},
		{&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "nohost", Server: "10.0.0.1:53", IsNotFound: true}},
			`there is no host "nohost"`},
		{&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "server misbehaving", Name: "nohost"}}, `the address of "nohost" could not be determined`},
		{&net.OpError{Op: "listen", Net: "tcp", Addr: to, Err: os.NewSyscallError("bind", syscall.EADDRINUSE)},
			"cannot listen at 127.0.0.1:9: address already in use"},
		{&net.OpError{Op: "read", Net: "tcp", Addr: to, Err: os.NewSyscallError("read", syscall.ECONNRESET)},
			"the connection broke: connection reset by peer"},
		{fmt.Errorf("out: %w", &fs.PathError{Op: "open", Path: "/x/y", Err: syscall.ENOENT}), "out: /x/y: no such file or directory"},
		{fmt.Errorf("https://x: %w", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}),
			"https://x: the server does not use TLS; try http://"},
		{fmt.Errorf("https://x: %w", http.ErrSchemeMismatch), "https://x: the server does not use TLS; try http://"},
		{fmt.Errorf("https://x: %w", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}),
			"https://x: the certificate is refused: certificate signed by unknown authority"},
		{errors.New("as it\n stands"), "as it stands"},
	} {
		if got := said(c.err); got != c.want {
			t.Errorf("%v\n  is said as %q\n  and not as %q", c.err, got, c.want)
		}
	}
}

// One that is left out is no plural.
func TestMore(t *testing.T) {
	for left, want := range map[int]string{0: "", 1: "and 1 more label: -n 0\n", 2: "and 2 more labels: -n 0\n"} {
		var out strings.Builder
		a := &app{out: bufio.NewWriter(&out)}
		a.more(3+left, 3, "labels")
		_ = a.out.Flush()
		if out.String() != want {
			t.Errorf("%d: %q", left, out.String())
		}
	}
}

func TestLongLinesBreakBetweenWords(t *testing.T) {
	for _, c := range []struct {
		width      int
		line, want string
	}{
		{0, "  one two three", "  one two three"}, {15, "  one two three", "  one two three"}, {9, "  one two three", "  one two\n     three"},
		{8, "a 0123456789 b", "a 0123456789\n   b"}, {12, "\x1b[1;33mACTION:\x1b[0m free it", "\x1b[1;33mACTION:\x1b[0m free\n   it"},
	} {
		if got := hanging(c.line, c.width); got != c.want {
			t.Errorf("%q at %d: %q, not %q", c.line, c.width, got, c.want)
		}
	}
}
