package k6http

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
)

// tlsOptions are tlsAuth, tlsVersion and tlsCipherSuites.
type tlsOptions struct {
	Auth         []clientCertificate
	Versions     tlsVersions
	CipherSuites []string
}

// clientCertificate is shown to servers of some domains; without domains, to
// all.
type clientCertificate struct {
	Cert     string   `json:"cert"` // PEM
	Key      string   `json:"key"`  // PEM
	Password string   `json:"password"`
	Domains  []string `json:"domains"`
}

// tlsVersions are the least and the greatest version allowed; empty leaves it
// to Go.
type tlsVersions struct {
	Min string `json:"min"`
	Max string `json:"max"`
}

// UnmarshalJSON reads {min, max}, or one version for both.
func (v *tlsVersions) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		v.Min, v.Max = one, one
		return nil
	}
	type plain tlsVersions
	return json.Unmarshal(text, (*plain)(v))
}

func parseVersion(text string) (uint16, error) {
	if text == "" {
		return 0, nil
	}
	for version := uint16(tls.VersionTLS10); version <= tls.VersionTLS13; version++ {
		if versionName(version) == text {
			return version, nil
		}
	}
	return 0, fmt.Errorf("options.tlsVersion: want one of tls1.0, tls1.1, tls1.2 and tls1.3, got %q", text)
}

// versionName is the text that scripts see for a version of TLS.
func versionName(version uint16) string {
	switch version {
	case tls.VersionTLS10:
		return "tls1.0"
	case tls.VersionTLS11:
		return "tls1.1"
	case tls.VersionTLS12:
		return "tls1.2"
	case tls.VersionTLS13:
		return "tls1.3"
	}
	return ""
}

// securer makes configurations for servers.
type securer struct {
	base         *tls.Config // without certificates
	certificates []domainCertificate
}

type domainCertificate struct {
	domains     []string
	certificate tls.Certificate
}

func newSecurer(o *options) (*securer, error) {
	s := &securer{base: &tls.Config{InsecureSkipVerify: o.InsecureSkipTLSVerify, //nolint:gosec // the script's own choice
		NextProtos: []string{"h2", "http/1.1"}}}
	var err error
	if s.base.MinVersion, err = parseVersion(o.TLS.Versions.Min); err != nil {
		return nil, err
	}
	if s.base.MaxVersion, err = parseVersion(o.TLS.Versions.Max); err != nil {
		return nil, err
	}
	known := slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites())
	for _, name := range o.TLS.CipherSuites {
		i := slices.IndexFunc(known, func(c *tls.CipherSuite) bool { return c.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("options.tlsCipherSuites: unknown suite %q: want names such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", name)
		}
		s.base.CipherSuites = append(s.base.CipherSuites, known[i].ID)
	}
	for i, a := range o.TLS.Auth {
		certificate, err := a.load()
		if err != nil {
			return nil, fmt.Errorf("options.tlsAuth[%d]: %w", i, err)
		}
		s.certificates = append(s.certificates, domainCertificate{a.Domains, certificate})
	}
	return s, nil
}

// load reads the certificate and its key, decrypting the latter if need be.
func (a clientCertificate) load() (tls.Certificate, error) {
	key := []byte(a.Key)
	if a.Password != "" {
		block, _ := pem.Decode(key)
		if block == nil {
			return tls.Certificate{}, errors.New("key: want a key in PEM form")
		}
		// The only form of encryption that this option has ever meant, weak as it is.
		der, err := x509.DecryptPEMBlock(block, []byte(a.Password)) //nolint:staticcheck // see above
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("decrypt key: %w", err)
		}
		key = pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: der})
	}
	certificate, err := tls.X509KeyPair([]byte(a.Cert), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read certificate and key: %w", err)
	}
	return certificate, nil
}

// config returns the configuration for a server.
func (s *securer) config(host string) *tls.Config {
	c := s.base.Clone()
	c.ServerName = host
	for _, d := range s.certificates {
		if len(d.domains) == 0 || slices.ContainsFunc(d.domains, func(p string) bool { return matchesHost(p, host) }) {
			c.Certificates = append(c.Certificates, d.certificate)
		}
	}
	return c
}
