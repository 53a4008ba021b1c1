package k6http

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"
	"golang.org/x/net/http2"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	pem         string
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{certificate, key, pemOf("CERTIFICATE", der)}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// issue makes a certificate for a name, and returns it with its key.
func (a authority) issue(t *testing.T, name string) (certificate, key string) {
	t.Helper()
	private := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pemOf("CERTIFICATE", der), pemOf("EC PRIVATE KEY", keyDER)
}

// serveTLS starts a server for the name secure.test.
func serveTLS(t *testing.T, a authority, h2 bool, change func(*tls.Config)) string {
	t.Helper()
	certificate, key := a.issue(t, "secure.test")
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			who = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		content, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s", who, r.Proto, r.Host, content)
	}))
	s.EnableHTTP2 = h2
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are what some tests are about
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	if change != nil {
		change(s.TLS)
	}
	s.StartTLS()
	s.TLS.Certificates = s.TLS.Certificates[:1]
	t.Cleanup(s.Close)
	return "https://secure.test:" + portOf(t, s.URL)
}

// trusting is options code for a server of serveTLS.
func trusting(more string) string {
	return "export const options = { hosts: { 'secure.test': '127.0.0.1', 'other.test': '127.0.0.1' }, " + more + " };\n---\n"
}

func TestTLS(t *testing.T) {
	a := newAuthority(t)
	one, two := serveTLS(t, a, false, nil), serveTLS(t, a, true, nil)
	o := passes(t, 5, one, trusting("insecureSkipTLSVerify: true")+`
		const r = http.get(B);
		same('HTTP/1.1', [r.status, r.proto, r.tls_version, r.tls_cipher_suite.startsWith('TLS_'), r.ocsp.status], [200, 'HTTP/1.1', http.TLS_1_3, true, http.OCSP_STATUS_UNKNOWN]);
		same('timings', [r.timings.tls_handshaking > 0, r.timings.connecting > 0, http.get(B).timings.tls_handshaking], [true, true, 0]);
		const h2 = http.post('`+two+`/x', 'body');
		same('HTTP/2', [h2.status, h2.proto, h2.body], [200, 'HTTP/2.0', 'nobody HTTP/2.0 ' + '`+two+`'.slice(8) + ' body']);
		const many = http.batch(Array(9).fill('`+two+`'));
		same('multiplexed', [many.every((r) => r.status === 200), many.every((r) => r.remote_port === many[0].remote_port)], [true, true]);
		same('plain words to a TLS port', http.get(B.replace('https', 'http')).status, 400);`)
	if n := o.Sum("http_reqs", map[string]string{"proto": "HTTP/2.0", "tls_version": "tls1.3"}); n != 10 {
		t.Errorf("%v samples of HTTP/2, want 10", n)
	}
	if o.Sum("http_req_tls_handshaking", nil) <= 0 || o.Sum("data_sent", nil) < 1000 {
		t.Error("handshakes took no time, or no bytes")
	}
}

func TestTLSFailures(t *testing.T) {
	a := newAuthority(t)
	base := serveTLS(t, a, false, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 })
	noTLS := strings.Replace(serve(t), "http:", "https:", 1)
	for _, c := range []struct {
		name, options, url string
		want               int
	}{
		{"unknown authority", "", base, 1310},
		{"no version in common", "tlsVersion: 'tls1.3', insecureSkipTLSVerify: true", base, 1300},
		{"no suite in common", "tlsCipherSuites: ['TLS_RSA_WITH_RC4_128_SHA'], tlsVersion: { min: 'tls1.2', max: 'tls1.2' }, insecureSkipTLSVerify: true", base, 1300},
		{"no TLS", "", noTLS, 1300},
	} {
		t.Run(c.name, func(t *testing.T) {
			passes(t, 1, c.url, trusting(c.options)+`same('code', [http.get(B).error_code, http.get(B).status], [`+fmt.Sprint(c.want)+`, 0]);`)
		})
	}
	passes(t, 1, base, trusting("insecureSkipTLSVerify: true, tlsVersion: { max: 'tls1.2' }, tlsCipherSuites: ['TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256']")+`
		const r = http.get(B); same('version', [r.tls_version, r.tls_cipher_suite], ['tls1.2', 'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256']);`)
}

func TestAWrongHostnameHasItsCode(t *testing.T) {
	a := newAuthority(t)
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	base := serveTLS(t, a, false, nil)
	for name, want := range map[string]int{"secure.test": 0, "other.test": codeWrongHostname} {
		common, err := newCommon(nil)
		if err != nil {
			t.Fatal(err)
		}
		common.securer.base.RootCAs = pool
		d := &dialer{common: common, traffic: &traffic{}}
		common.options.Hosts = map[string]string{"*.test": "127.0.0.1"}
		c, err := d.dialTLS(t.Context(), "tcp", net.JoinHostPort(name, portOf(t, base)))
		code := 0
		if err != nil {
			code, _ = classify(err)
		} else {
			c.Close()
		}
		if code != want {
			t.Errorf("%s: code %d, want %d: %v", name, code, want, err)
		}
	}
}

func TestClientCertificates(t *testing.T) {
	a := newAuthority(t)
	base := serveTLS(t, a, true, func(c *tls.Config) {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		c.ClientCAs.AddCert(a.certificate)
	})
	certificate, key := a.issue(t, "ada")
	wrong, wrongKey := newAuthority(t).issue(t, "eve")
	auth := func(entries ...map[string]any) string {
		text, err := json.Marshal(entries)
		if err != nil {
			t.Fatal(err)
		}
		return "insecureSkipTLSVerify: true, tlsAuth: " + string(text)
	}
	ada := map[string]any{"cert": certificate, "key": key, "domains": []string{"*.test"}}
	eve := map[string]any{"cert": wrong, "key": wrongKey, "domains": []string{"elsewhere.test"}}
	passes(t, 1, base, trusting(auth(eve, ada))+`same('who', http.get(B).body.split(' ')[0], 'ada');`)
	passes(t, 1, base, trusting(auth(eve))+`same('none', http.get(B).error_code >= 1000, true);`)
	block, _ := pem.Decode([]byte(key))
	locked, err := x509.EncryptPEMBlock(rand.Reader, block.Type, block.Bytes, []byte("open sesame"), x509.PEMCipherAES128) //nolint:staticcheck // what the option means
	if err != nil {
		t.Fatal(err)
	}
	ada["key"], ada["password"] = string(pem.EncodeToMemory(locked)), "open sesame"
	delete(ada, "domains")
	passes(t, 1, base, trusting(auth(ada))+`same('who', http.get(B).body.split(' ')[0], 'ada');`)
}

func TestStapledOCSP(t *testing.T) {
	a := newAuthority(t)
	for status, want := range map[int]string{ocsp.Good: `["good",""]`, ocsp.Revoked: `["revoked","key_compromise"]`, ocsp.Unknown: `["unknown",""]`} {
		answer, err := ocsp.CreateResponse(a.certificate, a.certificate, ocsp.Response{Status: status, SerialNumber: big.NewInt(2),
			ThisUpdate: time.Unix(1000, 0), NextUpdate: time.Unix(2000, 0), RevokedAt: time.Unix(500, 0), RevocationReason: ocsp.KeyCompromise}, a.key)
		if err != nil {
			t.Fatal(err)
		}
		base := serveTLS(t, a, false, func(c *tls.Config) { c.Certificates[0].OCSPStaple = answer })
		passes(t, 2, base, trusting("insecureSkipTLSVerify: true")+`const r = http.get(B).ocsp;
			same('status', [r.status, r.revocation_reason], `+want+`);
			same('times', [r.this_update, r.next_update], [1000, 2000]);`)
	}
}

// TestHTTP2FailuresHaveCodes speaks HTTP/2 by frames, as no server misbehaves
// on demand.
func TestHTTP2FailuresHaveCodes(t *testing.T) {
	a := newAuthority(t)
	certificate, key := a.issue(t, "secure.test")
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go misbehave(c)
		}
	}()
	base := "https://secure.test:" + portOf(t, "https://"+l.Addr().String())
	passes(t, 2, base, trusting("insecureSkipTLSVerify: true")+`
		same('stream error', http.post(B + '/stream', 'x').error_code, 1631 + 2);
		same('go away', http.post(B + '/away', 'x').error_code, 1611 + 11);`)
}

// misbehave answers the first request by an INTERNAL_ERROR of its stream, and
// the second by GOAWAY with ENHANCE_YOUR_CALM and the end.
func misbehave(c net.Conn) {
	defer c.Close()
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c, preface); err != nil {
		return
	}
	f := http2.NewFramer(c, c)
	if f.WriteSettings() != nil {
		return
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		h, ok := frame.(*http2.HeadersFrame)
		if !ok {
			continue
		}
		if h.StreamID == 1 {
			err = f.WriteRSTStream(h.StreamID, http2.ErrCodeInternal)
		} else {
			_ = f.WriteGoAway(h.StreamID, http2.ErrCodeEnhanceYourCalm, nil)
			return
		}
		if err != nil {
			return
		}
	}
}

func TestATLSHandshakeEndsInTime(t *testing.T) {
	silent := rawServer(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	passes(t, 1, strings.Replace(silent, "http:", "https:", 1), `same('code', http.get(B, { timeout: 100 }).error_code, 1050);`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _ := classify(&handshakeError{ctx.Err()}); code != codeGeneric {
		t.Errorf("a cancelled handshake has the code %d", code)
	}
}
