package config

import (
	"fmt"
	"io"
)

// Secret is a text that no printing shows: fmt with any verb, JSON, TOML and log
// all give "[secret]". Only Reveal gives the text.
type Secret struct {
	// A pointer, because fmt prints the unexported fields of a struct without
	// asking their methods: then it shows an address.
	text *string
}

const hidden = "[secret]"

func newSecret(text string) Secret { return Secret{&text} }

// Reveal returns the text, empty if none was configured.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// String returns "[secret]".
func (s Secret) String() string { return hidden }

// Format prints "[secret]" whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, hidden) }

// MarshalText returns "[secret]".
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }
