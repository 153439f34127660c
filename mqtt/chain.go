package mqtt

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"

	"shoed/round"
)

// Chain is a receipt: at event seq the head of the table's journal was this
// one. Who keeps it can show later whether the journal up to there is still the
// same (shoed journal verify --anchor).
//
// The head depends on every record so far, those of unseen faces too, yet tells
// nothing of them: the journal blinds it (package journal, Published heads).
type Chain struct {
	Seq       uint64 `json:"seq"`
	Head      string `json:"head"`      // 64 hexadecimal digits
	Signature []byte `json:"signature"` // Ed25519 over text, by the key in info
}

func chainOf(env *Envelope, r *Record, key ed25519.PrivateKey) *Chain {
	c := &Chain{Seq: r.Seq, Head: hex.EncodeToString(r.Head[:])}
	c.Signature = ed25519.Sign(key, c.text(env))
	return c
}

// text is what is signed: five lines, each with its line feed. It holds what
// makes the receipt this journal's, and nothing that differs in a repeat.
func (c *Chain) text(env *Envelope) []byte {
	return fmt.Appendf(nil, "shoed chain 1\n%s/%s\n%s\n%d\n%s\n", env.Site, env.Table, env.Epoch, c.Seq, c.Head)
}

// SignedBy reports whether c, received in a message with env, was signed with
// the private half of key.
func (c *Chain) SignedBy(key ed25519.PublicKey, env *Envelope) bool {
	return len(key) == ed25519.PublicKeySize && ed25519.Verify(key, c.text(env), c.Signature)
}

// isResult reports whether an event says what a round came to. Such events
// carry the chain: a correction or a void decides about money as the decision
// itself does, and the next round may be a shoe away.
func isResult(ev string) bool {
	return ev == round.RoundDecided.String() || ev == round.RoundCorrected.String() || ev == round.RoundVoided.String()
}
