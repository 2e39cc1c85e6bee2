package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// said is an error in one line, in words that a user knows: none of the names that Go has for calls and types.
func said(err error) string {
	text := err.Error()
	var flag *pflag.InvalidValueError
	var dns *net.DNSError
	var op *net.OpError
	var path *fs.PathError
	var plain tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &plain):
		text = strings.Replace(text, plain.Error(), "the server does not use TLS; try http://", 1)
	case errors.Is(err, http.ErrSchemeMismatch):
		text = strings.Replace(text, http.ErrSchemeMismatch.Error(), "the server does not use TLS; try http://", 1)
	case errors.As(err, &certificate):
		text = strings.Replace(text, certificate.Error(), "the certificate is refused: "+strings.TrimPrefix(certificate.Err.Error(), "x509: "), 1)
	case errors.As(err, &flag):
		text = strings.Replace(text, flag.Error(), badValue(flag), 1)
	case errors.As(err, &dns):
		outer := error(dns)
		if errors.As(err, &op) {
			outer = op
		}
		text = strings.Replace(text, outer.Error(), dnsFailed(dns), 1)
	case errors.As(err, &op):
		text = strings.Replace(text, op.Error(), opFailed(op), 1)
	case errors.As(err, &path):
		text = strings.Replace(text, path.Error(), path.Path+": "+path.Err.Error(), 1)
	}
	return oneLine(text)
}

// badValue says what a flag takes; a cause that is a sentence of our own stays.
func badValue(e *pflag.InvalidValueError) string {
	name, value := "--"+e.GetFlag().Name, e.GetValue()
	takes := ""
	switch t := e.GetFlag().Value.Type(); {
	case t == "duration":
		takes = "a time with its unit, such as 500ms, 2s or 1m"
	case strings.HasPrefix(t, "uint"):
		takes = "a whole number, 0 or more"
	case strings.HasPrefix(t, "int"):
		takes = "a whole number"
	case strings.HasPrefix(t, "float"):
		takes = "a number"
	case t == "bool":
		takes = "true or false"
	default:
		return fmt.Sprintf("%s %q: %v", name, value, e.Unwrap())
	}
	var number *strconv.NumError
	if errors.As(e.Unwrap(), &number) && errors.Is(number.Err, strconv.ErrRange) {
		return fmt.Sprintf("%s: %s is out of range", name, value)
	}
	return fmt.Sprintf("%s takes %s, not %q", name, takes, value)
}

func dnsFailed(e *net.DNSError) string {
	if e.IsNotFound {
		return fmt.Sprintf("there is no host %q", e.Name)
	}
	return fmt.Sprintf("the address of %q could not be determined", e.Name)
}

// opFailed leaves out the call, the protocol and our own address.
func opFailed(e *net.OpError) string {
	cause := e.Err.Error()
	if at := strings.LastIndex(cause, ": "); at >= 0 { // "connect: connection refused"
		cause = cause[at+2:]
	}
	if e.Timeout() {
		cause = "no answer in time"
	}
	switch {
	case e.Op == "listen":
		where := ""
		if e.Addr != nil {
			where = " at " + e.Addr.String()
		}
		return "cannot listen" + where + ": " + cause
	case e.Op == "dial" && e.Addr != nil:
		return "cannot connect to " + e.Addr.String() + ": " + cause
	case e.Op == "dial":
		return "cannot connect: " + cause
	}
	return "the connection broke: " + cause
}
