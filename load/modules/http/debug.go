package k6http

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
)

// Values of the option httpDebug.
const (
	debugHeaders = "headers"
	debugFull    = "full"
)

// debugRequest logs a request as it goes out, if the options ask for it.
func (l *line) debugRequest(req *http.Request) {
	if l.options.HTTPDebug == "" {
		return
	}
	text, err := httputil.DumpRequestOut(req.Clone(req.Context()), l.options.HTTPDebug == debugFull)
	if req.GetBody != nil {
		req.Body, _ = req.GetBody() // never fails; the dump has read the first one
	}
	l.debug("Request", text, err)
}

// debugResponse logs a response, whose body is read by now.
func (l *line) debugResponse(res *http.Response, content []byte) {
	if l.options.HTTPDebug == "" {
		return
	}
	shown := *res
	shown.Body = io.NopCloser(bytes.NewReader(content))
	shown.ContentLength = int64(len(content))
	text, err := httputil.DumpResponse(&shown, l.options.HTTPDebug == debugFull)
	l.debug("Response", text, err)
}

func (l *line) debug(what string, text []byte, err error) {
	if err != nil {
		l.log.Warn(what+" cannot be shown: "+err.Error(), "source", "http-debug")
		return
	}
	l.log.Info(what+":\n"+strings.TrimRight(string(text), "\r\n"), "source", "http-debug")
}
