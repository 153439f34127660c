package mqtt

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// key is the table's, and headOf the heads of its journal.
var key = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))

func headOf(seq uint64) [32]byte { return sha256.Sum256(fmt.Append(nil, seq)) }

// The text that is signed is for ever: old receipts must stay good. A receipt
// is good for its table, journal, event and head, and for no other.
func TestChainText(t *testing.T) {
	env := envelope("event", 9)
	c := chainOf(&env, &Record{Seq: 9, Head: headOf(9)}, key)
	want := "shoed chain 1\nhouse/table-1\n0123456789abcdef\n9\n19581e27de7ced00ff1ce50b2047e7a567c76b1cbaebabe5ef03f7c3017bb5b7\n"
	if got := string(c.text(&env)); got != want {
		t.Errorf("signed is\n%swant\n%s", got, want)
	}
	public := key.Public().(ed25519.PublicKey)
	if !c.SignedBy(public, &env) || !ed25519.Verify(public, []byte(want), c.Signature) {
		t.Error("the signature is not good")
	}
	for name, change := range map[string]func(*Chain, *Envelope){
		"site":  func(_ *Chain, env *Envelope) { env.Site = "other" },
		"table": func(_ *Chain, env *Envelope) { env.Table = "table-2" },
		"epoch": func(_ *Chain, env *Envelope) { env.Epoch = "0123456789abcdee" },
		"seq":   func(c *Chain, _ *Envelope) { c.Seq++ },
		"head":  func(c *Chain, _ *Envelope) { c.Head = strings.Replace(c.Head, "1", "2", 1) },
		"signature": func(c *Chain, _ *Envelope) {
			c.Signature = bytes.Clone(c.Signature)
			c.Signature[3] ^= 1
		},
		"no signature": func(c *Chain, _ *Envelope) { c.Signature = nil },
	} {
		other, at := *c, env
		if change(&other, &at); other.SignedBy(public, &at) {
			t.Errorf("%s: changed, and still good", name)
		}
	}
	if c.SignedBy(nil, &env) || c.SignedBy(bytes.Repeat([]byte{1}, 32), &env) {
		t.Error("good for another key")
	}
}

// What a round came to goes out with its chain, and when it is repeated after
// a broken connection, with the same one.
func TestChainOfEvents(t *testing.T) {
	addr := openBroker(t).TCP
	d := newTable(t, 30)
	px := newProxy(t, addr)
	in := newInbox(t, addr)
	publish(t, d, px.addr, nil)
	d.deal(60)
	in.hasEvent(d.last())
	d.mu.Lock()
	d.delivered = 0 // as after a crash: everything is sent again
	d.mu.Unlock()
	px.cut()
	in.has("the last event again", func(m message) bool { return m.name == "event" && m.Seq == d.last() && m.Delayed })
	signed, first := 0, map[uint64][]byte{}
	for _, m := range in.of("event") {
		var e Event
		if err := json.Unmarshal(m.body, &e); err != nil {
			t.Fatal(err)
		}
		if (e.Chain != nil) != strings.Contains("round.decided round.corrected round.voided", e.Ev) {
			t.Fatalf("%s: chain %+v", e.Ev, e.Chain)
		}
		body := bytes.Replace(m.body, []byte(`,"delayed":true`), nil, 1)
		if before, repeated := first[e.Seq]; repeated && !bytes.Equal(before, body) {
			t.Errorf("repeated differently:\n%s\n%s", before, body)
		}
		first[e.Seq] = body
		if e.Chain == nil {
			continue
		}
		signed++
		if e.Chain.Seq != e.Seq || e.Chain.Head != fmt.Sprintf("%x", headOf(e.Seq)) || !e.Chain.SignedBy(key.Public().(ed25519.PublicKey), &e.Envelope) {
			t.Errorf("event %d: %+v", e.Seq, e.Chain)
		}
	}
	if signed < 10 {
		t.Errorf("%d events with a chain: nothing is tested", signed)
	}
}
