package output

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/klauspost/compress/snappy"
)

// remote takes the encoded requests of remote write.
type remote interface {
	// send delivers one request, once. A [*refusal] is final; after any other
	// error the same request may be sent again.
	send(ctx context.Context, request []byte) error
	close()
}

// refusal is an answer that will not change when the request is repeated.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// httpRemote speaks remote write 1.0 over HTTP.
type httpRemote struct {
	client  *http.Client
	url     string
	headers http.Header
}

var _ remote = (*httpRemote)(nil)

// maxComplaint bounds what is read of the text of a failed answer.
const maxComplaint = 1 << 10

func (r *httpRemote) send(ctx context.Context, request []byte) error {
	body := snappy.Encode(nil, request)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return &refusal{err}
	}
	req.Header = r.headers.Clone()
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxComplaint)) // a help to people only
	if resp.StatusCode/100 == 2 {
		return nil
	}
	err = fmt.Errorf("%s answered %s: %s", r.url, resp.Status, strings.TrimSpace(string(text)))
	if resp.StatusCode/100 == 5 || resp.StatusCode == http.StatusTooManyRequests {
		return err
	}
	return &refusal{err}
}

func (r *httpRemote) close() { r.client.CloseIdleConnections() }

// openHTTPRemote reads where and how to send from the environment.
func openHTTPRemote(s *settings, argument, version string) (*httpRemote, error) {
	target := argument
	if target == "" {
		target = s.text("SERVER_URL", "http://localhost:9090/api/v1/write")
	}
	if u, err := url.Parse(target); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("bad URL %q: want one such as http://localhost:9090/api/v1/write", target)
	}
	headers := http.Header{}
	for name, value := range s.pairs("HTTP_HEADERS", ":") {
		headers.Set(name, value)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy",
		"X-Prometheus-Remote-Write-Version": "0.1.0", "User-Agent": "metachaos/" + version,
	} {
		headers.Set(name, value)
	}
	if token := s.text("BEARER_TOKEN", ""); token != "" {
		headers.Set("Authorization", "Bearer "+token)
	}
	if user := s.text("USERNAME", ""); user != "" {
		basic := http.Request{Header: http.Header{}}
		basic.SetBasicAuth(user, s.text("PASSWORD", ""))
		headers.Set("Authorization", basic.Header.Get("Authorization"))
	}
	conf, err := s.clientTLS("INSECURE_SKIP_TLS_VERIFY", "CLIENT_CERTIFICATE", "CLIENT_CERTIFICATE_KEY")
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = conf
	return &httpRemote{client: &http.Client{Transport: transport}, url: target, headers: headers}, s.err
}

// clientTLS reads a configuration of TLS by the names of its variables.
func (s *settings) clientTLS(insecure, certificate, key string) (*tls.Config, error) {
	conf := &tls.Config{InsecureSkipVerify: s.flag(insecure, false)} // at the user's request
	cert, keyFile := s.text(certificate, ""), s.text(key, "")
	switch {
	case cert == "" && keyFile == "":
	case cert == "" || keyFile == "":
		return nil, fmt.Errorf("K6_%s%s and K6_%s%s go together: set both or none", s.prefix, certificate, s.prefix, key)
	default:
		pair, err := tls.LoadX509KeyPair(cert, keyFile)
		if err != nil {
			return nil, fmt.Errorf("load client certificate: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

// persist sends until the request is taken, is refused, or ctx ends.
func persist(ctx context.Context, r remote, request []byte) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := r.send(ctx, request)
		var final *refusal
		if err == nil || errors.As(err, &final) || ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
