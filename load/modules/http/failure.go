package k6http

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"golang.org/x/net/http2"
)

// Codes of errors, as k6 documents them. An answer with a status from 400 on
// has the code 1000 + status.
const (
	codeGeneric          = 1000
	codeNonTCP           = 1010
	codeInvalidURL       = 1020
	codeTimeout          = 1050
	codeDNS              = 1100
	codeNoSuchHost       = 1101
	codeBlacklistedIP    = 1110
	codeBlockedHostname  = 1111
	codeTCP              = 1200
	codeBrokenPipe       = 1201
	codeTCPErrno         = 1202
	codeDial             = 1210
	codeDialTimeout      = 1211
	codeDialRefused      = 1212
	codeDialErrno        = 1213
	codeConnectionReset  = 1220
	codeTLS              = 1300
	codeUnknownAuthority = 1310
	codeWrongHostname    = 1311
	codeHTTP2            = 1600
	codeGoAway           = 1610
	codeStream           = 1630
	codeHTTP2Connection  = 1650
	codeDecompression    = 1701
)

// maxHTTP2Code bounds the error codes of HTTP/2 that have codes of their own.
const maxHTTP2Code = 18

// errTimeout is the cause of a request's end when its time is up.
var errTimeout = errors.New("request timeout")

// blockedError is a connection that an option forbids.
type blockedError struct {
	code                  int
	what, option, pattern string
}

func (e *blockedError) Error() string {
	return fmt.Sprintf("%s is blocked by options.%s (%s)", e.what, e.option, e.pattern)
}

type invalidURLError struct{ err error }

func (e *invalidURLError) Error() string { return "invalid URL: " + e.err.Error() }
func (e *invalidURLError) Unwrap() error { return e.err }

// handshakeError is a connection that could not be made secure.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "TLS handshake: " + e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

// classify returns the code of an error and what tags and responses say of it.
// The text is one of few for the common errors, for it becomes a tag.
func classify(err error) (code int, text string) {
	var blocked *blockedError
	var invalid *invalidURLError
	var encoding *decompressError
	var dns *net.DNSError
	switch {
	case errors.As(err, &blocked):
		return blocked.code, blocked.Error()
	case errors.As(err, &invalid):
		return codeInvalidURL, invalid.Error()
	case errors.As(err, &encoding):
		return codeDecompression, encoding.Error()
	case errors.Is(err, errTimeout):
		return codeTimeout, errTimeout.Error()
	case errors.As(err, &dns):
		if dns.IsNotFound {
			return codeNoSuchHost, "lookup: no such host"
		}
		return codeDNS, "lookup: " + dns.Err
	}
	if code, text := classifyTLS(err); code != 0 {
		return code, text
	}
	if code, text := classifyHTTP2(err); code != 0 {
		return code, text
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return classifyNetwork(op)
	}
	if errors.Is(err, syscall.ECONNRESET) {
		return codeConnectionReset, "connection reset by peer"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return codeTimeout, errTimeout.Error()
	}
	return codeGeneric, err.Error()
}

func classifyNetwork(op *net.OpError) (code int, text string) {
	if !strings.HasPrefix(op.Net, "tcp") {
		return codeNonTCP, op.Error()
	}
	var errno syscall.Errno
	isErrno := errors.As(op.Err, &errno)
	if op.Op == "dial" {
		switch {
		case op.Timeout():
			return codeDialTimeout, "dial: i/o timeout"
		case errno == syscall.ECONNREFUSED:
			return codeDialRefused, "dial: connection refused"
		case isErrno:
			return codeDialErrno, "dial: " + errno.Error()
		}
		return codeDial, op.Error()
	}
	switch {
	case errno == syscall.ECONNRESET:
		return codeConnectionReset, op.Op + ": connection reset by peer"
	case errno == syscall.EPIPE && op.Op == "write":
		return codeBrokenPipe, "write: broken pipe"
	case isErrno:
		return codeTCPErrno, op.Op + ": " + errno.Error()
	}
	return codeTCP, op.Error()
}

func classifyTLS(err error) (code int, text string) {
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var shake *handshakeError
	var verification *tls.CertificateVerificationError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &authority):
		return codeUnknownAuthority, "x509: the certificate is signed by an unknown authority"
	case errors.As(err, &hostname):
		return codeWrongHostname, "x509: the certificate is not for this hostname"
	case errors.As(err, &shake):
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			return 0, ""
		}
		return codeTLS, shake.Error()
	case errors.As(err, &verification), errors.As(err, &alert), errors.As(err, &record):
		return codeTLS, err.Error()
	}
	return 0, ""
}

func classifyHTTP2(err error) (code int, text string) {
	var away http2.GoAwayError
	var stream http2.StreamError
	var connection http2.ConnectionError
	switch {
	case errors.As(err, &away):
		return http2Code(codeGoAway, away.ErrCode), "http2: the server sent GOAWAY with " + away.ErrCode.String()
	case errors.As(err, &stream):
		return http2Code(codeStream, stream.Code), "http2: stream error " + stream.Code.String()
	case errors.As(err, &connection):
		return http2Code(codeHTTP2Connection, http2.ErrCode(connection)), "http2: connection error " + http2.ErrCode(connection).String()
	case strings.HasPrefix(err.Error(), "http2: "):
		return codeHTTP2, err.Error()
	}
	return 0, ""
}

// http2Code is general for codes that have none of their own.
func http2Code(general int, code http2.ErrCode) int {
	if code > maxHTTP2Code {
		return general
	}
	return general + 1 + int(code)
}
