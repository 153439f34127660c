package mqtt

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// authority is a house's own, which no system trusts.
type authority struct {
	t    testing.TB
	dir  string // ca.crt, and what it has issued: NAME.crt and NAME.key
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.issue("ca", x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *authority) path(file string) string { return filepath.Join(a.dir, file) }

// issue writes a certificate for a day, unless it says otherwise, and its key.
func (a *authority) issue(name string, c x509.Certificate) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore = big.NewInt(time.Now().UnixNano()), time.Now().Add(-48*time.Hour)
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(24 * time.Hour)
	}
	c.Subject = pkix.Name{CommonName: cmp.Or(c.Subject.CommonName, name)}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = &c, key
	}
	cert, err := x509.CreateCertificate(crand.Reader, &c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	if a.cert == nil {
		if a.cert, err = x509.ParseCertificate(cert); err != nil {
			a.t.Fatal(err)
		}
		a.key = key
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
	a.write(name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

func (a *authority) write(file string, text []byte) {
	a.t.Helper()
	if err := os.WriteFile(a.path(file), text, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// broker starts a mosquitto named broker.test that wants a certificate of ours
// and logs whose it saw.
func (a *authority) broker(server x509.Certificate, more ...string) *mosquitto {
	a.t.Helper()
	server.DNSNames = []string{"broker.test"}
	a.issue("broker", server)
	return startMosquitto(a.t, append([]string{"cafile " + a.path("ca.crt"), "certfile " + a.path("broker.crt"), "keyfile " + a.path("broker.key"),
		"require_certificate true", "use_identity_as_username true"}, more...)...)
}

// files are all that broker needs.
func (a *authority) files() TLS {
	return TLS{CAFile: a.path("ca.crt"), CertFile: a.path("table.crt"), KeyFile: a.path("table.key"), ServerName: "broker.test"}
}

func TestTLSWithOwnAuthority(t *testing.T) {
	a := newAuthority(t)
	a.issue("table", x509.Certificate{})
	web := freePort(t)
	m := a.broker(x509.Certificate{}, "listener "+web[strings.LastIndexByte(web, ':')+1:]+" 127.0.0.1", "protocol websockets",
		"cafile "+a.path("ca.crt"), "certfile "+a.path("broker.crt"), "keyfile "+a.path("broker.key"), "require_certificate true")
	for name, c := range map[string]struct {
		server string
		change func(*TLS)
		refuse string // "" for taken
	}{
		"mqtts":                  {"mqtts://" + m.addr, func(*TLS) {}, ""},
		"wss":                    {"wss://" + web + "/mqtt", func(*TLS) {}, ""},
		"authority not trusted":  {"mqtts://" + m.addr, func(f *TLS) { f.CAFile = "" }, "certificate signed by unknown authority"},
		"the same by wss":        {"wss://" + web + "/mqtt", func(f *TLS) { f.CAFile = "" }, "certificate signed by unknown authority"},
		"name of the address":    {"mqtts://" + m.addr, func(f *TLS) { f.ServerName = "" }, "cannot validate certificate for 127.0.0.1"},
		"another name":           {"mqtts://" + m.addr, func(f *TLS) { f.ServerName = "broker.example.org" }, "valid for broker.test, not broker.example.org"},
		"no certificate to show": {"mqtts://" + m.addr, func(f *TLS) { f.CertFile, f.KeyFile = "", "" }, "certificate required"},
		"without TLS":            {"mqtt://" + m.addr, func(*TLS) {}, "network Error"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTable(t, 30)
			d.deal(3)
			r := publish(t, d, m.addr, func(o *Options) {
				o.Servers, o.TLS = []string{c.server}, a.files()
				c.change(&o.TLS)
			})
			if c.refuse == "" {
				until(t, "delivery", func() bool { return d.cursor() == d.last() })
				return
			}
			until(t, "the reason in the log: "+c.refuse, func() bool {
				return slices.ContainsFunc(strings.Split(r.log.String(), "\n"), func(line string) bool {
					return strings.Contains(line, "code=broker_unreachable") && strings.Contains(line, c.refuse)
				})
			})
			if d.cursor() > 0 {
				t.Error("published all the same")
			}
		})
	}
}

func TestServerCertificateExpired(t *testing.T) {
	a := newAuthority(t)
	a.issue("table", x509.Certificate{})
	m := a.broker(x509.Certificate{NotAfter: time.Now().Add(-time.Hour)})
	r := publish(t, newTable(t, 31), m.addr, func(o *Options) { o.Servers, o.TLS = []string{"mqtts://" + m.addr}, a.files() })
	until(t, "the refusal", func() bool { return r.log.count("code=broker_unreachable") > 0 })
	if r.log.count("certificate has expired") == 0 {
		t.Errorf("not said: %s", r.log)
	}
}

// A renewed certificate is used for the next connection; one that cannot be
// read is told and the last good one used on.
func TestClientCertificateRenewed(t *testing.T) {
	a := newAuthority(t)
	a.issue("table", x509.Certificate{})
	m := a.broker(x509.Certificate{})
	px := newProxy(t, m.addr)
	d := newTable(t, 32)
	r := publish(t, d, px.addr, func(o *Options) { o.Servers, o.TLS = []string{"mqtts://" + px.addr}, a.files() })
	connected := 0
	again := func(as string) {
		t.Helper()
		before := m.log.count("u'" + as + "'")
		if connected++; connected > 1 {
			until(t, "a cut", func() bool { return px.cut() > 0 })
		}
		until(t, "a connection as "+as, func() bool { return m.log.count("u'"+as+"'") > before })
		d.deal(1)
		until(t, "delivery", func() bool { return d.cursor() == d.last() })
	}
	again("table")
	a.issue("table", x509.Certificate{Subject: pkix.Name{CommonName: "renewed"}})
	again("renewed")
	a.write("table.crt", []byte("half a certifi"))
	again("renewed")
	if r.log.count("code=certificate_unreadable") == 0 || r.log.count(a.path("table.crt")) == 0 {
		t.Errorf("not said: %s", r.log)
	}
	a.issue("table", x509.Certificate{Subject: pkix.Name{CommonName: "repaired"}})
	again("repaired")
}

func TestExpiry(t *testing.T) {
	day := 24 * time.Hour
	in := func(after time.Duration) x509.Certificate { return x509.Certificate{NotAfter: time.Now().Add(after)} }
	for _, c := range []struct {
		ours, brokers time.Duration
		what          string
		days          int // of the warning; 0 for none
	}{
		{40 * day, 31 * day, "certificate of broker ", 0},
		{40 * day, 29 * day, "certificate of broker ", 30},
		{6 * day, 40 * day, "client certificate ", 7},
		{23 * time.Hour, 25 * time.Hour, "client certificate ", 1},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			a := newAuthority(t)
			a.issue("table", in(c.ours))
			m := a.broker(in(c.brokers))
			px := newProxy(t, m.addr)
			d := newTable(t, 33)
			r := publish(t, d, px.addr, func(o *Options) { o.Servers, o.TLS = []string{"mqtts://" + px.addr}, a.files() })
			until(t, "connected", func() bool { return r.log.count("code=broker_connected") == 1 })
			what, at := r.Expiry()
			if earliest := time.Now().Add(min(c.ours, c.brokers)); !strings.HasPrefix(what, c.what) || at.Sub(earliest).Abs() > time.Minute {
				t.Errorf("%s ends %v, want %s %v", what, at, c.what, earliest)
			}
			until(t, "a cut", func() bool { return px.cut() > 0 })
			d.deal(1)
			until(t, "delivery after it", func() bool { return d.cursor() == d.last() })
			warnings := r.log.count("code=certificate_expires")
			if want := min(c.days, 1); warnings != want || r.log.count(fmt.Sprintf("days=%d\n", c.days)) != want {
				t.Errorf("%d warnings: %s", warnings, r.log)
			}
		})
	}
	plain := publish(t, newTable(t, 34), openBroker(t).TCP, nil)
	until(t, "connected", func() bool { return plain.log.count("code=broker_connected") == 1 })
	if what, at := plain.Expiry(); what != "" || !at.IsZero() {
		t.Errorf("without TLS %q ends %v", what, at)
	}
}

func TestWrongTLSFiles(t *testing.T) {
	a := newAuthority(t)
	a.issue("table", x509.Certificate{})
	a.issue("other", x509.Certificate{})
	a.write("garbage", []byte("no certificate"))
	for name, c := range map[string]struct {
		change func(*TLS)
		say    string
	}{
		"no authority file":    {func(f *TLS) { f.CAFile = a.path("none") }, a.path("none") + ": no such file"},
		"authority of garbage": {func(f *TLS) { f.CAFile = a.path("garbage") }, a.path("garbage") + " holds none in PEM"},
		"no certificate file":  {func(f *TLS) { f.CertFile = a.path("none") }, a.path("none") + ": no such file"},
		"another's key":        {func(f *TLS) { f.KeyFile = a.path("other.key") }, "private key does not match"},
	} {
		f := a.files()
		c.change(&f)
		if _, err := f.load(); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := New(Options{Servers: []string{"mqtts://a"}, TLS: f}); err == nil || !strings.Contains(errors.Unwrap(err).Error(), c.say) {
			t.Errorf("%s: New: %v", name, err)
		}
	}
}

// A half-open connection, on which everything sent is taken and nothing
// answered, is found within two keepalives: idle, and while events go out whose
// acknowledgements may take longer than that.
func TestHalfOpen(t *testing.T) {
	for scheme, start := range map[string]func(*authority) string{
		"mqtt":  func(a *authority) string { return openBroker(a.t).TCP },
		"ws":    func(a *authority) string { return openBroker(a.t).WebSocket },
		"mqtts": func(a *authority) string { return a.broker(x509.Certificate{}).addr },
	} {
		for _, traffic := range []bool{false, true} {
			t.Run(fmt.Sprint(scheme, " traffic ", traffic), func(t *testing.T) {
				t.Parallel()
				halfOpen(t, scheme, start, traffic)
			})
		}
	}
}

func halfOpen(t *testing.T, scheme string, start func(*authority) string, traffic bool) {
	const keepAlive = time.Second
	a := newAuthority(t)
	a.issue("table", x509.Certificate{})
	d := newTable(t, 35)
	px := newProxy(t, start(a))
	r := publish(t, d, px.addr, func(o *Options) {
		o.Servers, o.TLS = []string{scheme + "://" + px.addr}, a.files()
		o.KeepAlive, o.AckTimeout, o.Window, o.HealthEvery = keepAlive, time.Minute, 16, time.Hour
	})
	d.deal(5)
	until(t, "delivery", func() bool { return d.cursor() == d.last() })
	px.swallow()
	since := time.Now()
	until(t, "the loss", func() bool {
		if traffic && d.last() < 5000 {
			d.deal(1)
		}
		return r.log.count("code=broker_lost") > 0
	})
	if took := time.Since(since); took > 2*keepAlive+time.Second/2 { // the machine's own delays
		t.Errorf("found after %v", took)
	}
	px.open()
	px.cut() // a connection of which it took the beginning, too
	until(t, "delivery", func() bool { return d.cursor() == d.last() })
}
