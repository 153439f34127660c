package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"

	"shoed/mqtt"
)

// checkCertificates looks at the files: readable, of one piece, not ended.
// Whether the broker accepts ours, and we the broker's, shows at the broker.
func checkCertificates(_ context.Context, p *inspected) []mqtt.Finding {
	m := &p.cfg.MQTT
	var found []mqtt.Finding
	if m.CAFile != "" {
		found = append(found, p.trusted(m.CAFile)...)
	}
	if m.CertFile != "" {
		found = append(found, p.pair("mqtt.cert_file", m.CertFile, m.KeyFile)...)
	}
	if m.ListenCertFile != "" {
		found = append(found, p.pair("mqtt.listen_cert_file", m.ListenCertFile, m.ListenKeyFile)...)
	}
	return found
}

// trusted looks at the certificates to trust.
func (p *inspected) trusted(file string) []mqtt.Finding {
	const name = "mqtt.ca_file"
	text, err := os.ReadFile(p.under(file))
	if err != nil {
		return failed(name, fmt.Errorf("%w; let shoed's user read it", err))
	}
	chain, err := certificates(text)
	if err != nil {
		return failed(name, fmt.Errorf("%s: %w", file, err))
	}
	var found []mqtt.Finding
	for _, c := range chain {
		found = append(found, p.lasting(name, c)...)
	}
	return found
}

// certificates reads all that are in a PEM file.
func certificates(text []byte) (all []*x509.Certificate, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d cannot be read: %w", len(all)+1, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, errors.New("it holds no certificate in PEM")
	}
	return all, nil
}

// pair looks at a certificate to show, with those that lead to a root, and its key.
func (p *inspected) pair(name, certFile, keyFile string) []mqtt.Finding {
	pair, err := tls.LoadX509KeyPair(p.under(certFile), p.under(keyFile))
	if err != nil {
		return failed(name, fmt.Errorf("certificate %s with key %s: %w", certFile, keyFile, err))
	}
	above := pair.Leaf
	found := p.lasting(name, pair.Leaf)
	for _, der := range pair.Certificate[1:] {
		next, err := x509.ParseCertificate(der)
		if err == nil {
			err = above.CheckSignatureFrom(next)
		}
		if err != nil {
			return append(found, failed(name, fmt.Errorf("%s: each certificate must be followed by the one that signed it, and %q is not: %w", certFile, above.Subject, err))...)
		}
		found = append(found, p.lasting(name, next)...)
		above = next
	}
	return found
}

// lasting says how long a certificate holds yet.
func (p *inspected) lasting(name string, c *x509.Certificate) []mqtt.Finding {
	days := int(c.NotAfter.Sub(p.now) / (24 * time.Hour))
	who := c.Subject.String()
	switch {
	case p.now.Before(c.NotBefore):
		return failed(name, fmt.Errorf("%s holds only from %v on: renew it, or set the clock", who, c.NotBefore))
	case p.now.After(c.NotAfter):
		return failed(name, fmt.Errorf("%s has ended at %v: renew it", who, c.NotAfter))
	case days < 30:
		return warned(name, "%s ends in %d days: renew it", who, days)
	}
	return passed(name, "%s holds for %d days", who, days)
}
