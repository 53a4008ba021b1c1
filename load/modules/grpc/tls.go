package k6grpc

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/grafana/sobek"

	"github.com/metachaos/metachaos/load/modules/wire"
)

// readTLS reads {cacerts, cert, key, password} in PEM.
func readTLS(v sobek.Value) (*tls.Config, error) {
	o, ok := v.(*sobek.Object)
	if !ok {
		return nil, fmt.Errorf("want an object, got %s", v)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if cas := o.Get("cacerts"); !wire.Absent(cas) {
		c.RootCAs = x509.NewCertPool()
		for _, text := range texts(cas) {
			if !c.RootCAs.AppendCertsFromPEM([]byte(text)) {
				return nil, errors.New("cacerts: want certificates in PEM form")
			}
		}
	}
	cert, key := o.Get("cert"), o.Get("key")
	if wire.Absent(cert) && wire.Absent(key) {
		return c, nil
	}
	if wire.Absent(cert) || wire.Absent(key) {
		return nil, errors.New("cert and key: want both or none")
	}
	keyPEM := []byte(key.String())
	if password := o.Get("password"); !wire.Absent(password) {
		var err error
		if keyPEM, err = decryptKey(keyPEM, password.String()); err != nil {
			return nil, err
		}
	}
	pair, err := tls.X509KeyPair([]byte(cert.String()), keyPEM)
	if err != nil {
		return nil, fmt.Errorf("cert and key: %w", err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// decryptKey opens a key of the old PEM encryption, which k6 accepts.
func decryptKey(raw []byte, password string) ([]byte, error) {
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, errors.New("key: want PEM form")
	}
	der, err := x509.DecryptPEMBlock(block, []byte(password)) //nolint:staticcheck // the form that scripts have
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: der}), nil
}
