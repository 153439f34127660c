package mqtt

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"time"
)

// TLS says whom to trust and what to show at a broker with mqtts:// or wss://.
// The files are read for each connection, so renewed ones need no restart.
// Its zero value trusts the system's roots and shows nothing.
type TLS struct {
	CAFile     string // PEM; trusted besides the system's roots
	CertFile   string // PEM; our certificate, followed by what lies between it and a root
	KeyFile    string // PEM; its key
	ServerName string // the name that the broker must prove, instead of its address's
}

// load reads the files. The error names the one that is wrong.
func (t TLS) load() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		text, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("certificates to trust: %w", err)
		}
		if c.RootCAs, err = x509.SystemCertPool(); err != nil {
			return nil, fmt.Errorf("the system's certificates: %w", err)
		}
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("certificates to trust: %s holds none in PEM", t.CAFile)
		}
	}
	if t.CertFile == "" && t.KeyFile == "" {
		return c, nil
	}
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", t.CertFile, t.KeyFile, err)
	}
	c.Certificates = []tls.Certificate{pair}
	// Shown even where the broker names other issuers: its refusal then says
	// more than that none was shown.
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return c, nil
}

// forServer is a copy for one connection.
func forServer(c *tls.Config, server *url.URL) *tls.Config {
	c = c.Clone()
	c.ServerName = cmp.Or(c.ServerName, server.Hostname())
	return c
}

// security is what the next connection is made with: the files as they are, or
// as they last were when one of them is wrong now.
func (p *Publisher) security(server *url.URL) *tls.Config {
	fresh, err := p.o.TLS.load()
	if err != nil {
		p.report(slog.LevelError, "certificate_unreadable", nil, "a TLS file is wrong and its last good content still used: put it right", "error", err)
	} else {
		p.resolved("certificate_unreadable")
		p.good = fresh
	}
	c := forServer(p.good, server)
	c.VerifyConnection = func(shaken tls.ConnectionState) error { // called when the broker's is verified, before ours is shown
		end := expiry{"certificate of broker " + server.Host, shaken.PeerCertificates[0].NotAfter}
		if len(c.Certificates) > 0 && c.Certificates[0].Leaf.NotAfter.Before(end.at) {
			end = expiry{"client certificate " + p.o.TLS.CertFile, c.Certificates[0].Leaf.NotAfter}
		}
		p.expiry.Store(&end)
		return nil
	}
	return c
}

// expiry is when a certificate ends, and which.
type expiry struct {
	what string
	at   time.Time
}

// Expiry says which of the two certificates of the last TLS handshake, ours and
// the broker's, ends first, and when; a zero time when there was none. It may
// be called from any goroutine.
func (p *Publisher) Expiry() (what string, at time.Time) {
	if end := p.expiry.Load(); end != nil {
		return end.what, end.at
	}
	return "", time.Time{}
}

// warned is the last warning of a certificate's end.
type warned struct {
	expiry
	days int
}

// warnOfExpiry logs once when 30, 7 and 1 days are left of a certificate.
func (p *Publisher) warnOfExpiry() {
	end := p.expiry.Load()
	if end == nil {
		return
	}
	left := end.at.Sub(p.o.Now())
	for _, days := range []int{1, 7, 30} {
		if left > time.Duration(days)*24*time.Hour {
			continue
		}
		if now := (warned{*end, days}); p.warned != now {
			p.warned = now
			p.o.Log.Warn("a certificate ends soon or has ended: renew it", "code", "certificate_expires", "what", end.what, "at", end.at, "days", days)
		}
		return
	}
}
