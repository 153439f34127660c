package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"shoed/journal"
	"shoed/mqtt"
)

// maxArchiveLine bounds a line: a message has at most 32 KB, and what an archive
// adds to it.
const maxArchiveLine = 256 << 10

// archive is what messages kept elsewhere say of one journal.
type archive struct {
	name    string
	anchors []anchor
	key     []byte // from an info message
	keyLine int
	ignored int // lines without an anchor or a key
}

// anchor is a signed head as a message carried it.
type anchor struct {
	mqtt.Envelope
	Chain *mqtt.Chain `json:"chain"`
	line  int
}

// readArchive reads a message a line, JSON, with anything before its brace,
// such as the topic that mosquitto_sub -v prints.
func readArchive(path string) (*archive, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a := &archive{name: path}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxArchiveLine)
	n := 1
	for ; lines.Scan(); n++ {
		if err := a.add(n, lines.Bytes()); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", path, n, err)
	}
	if len(a.anchors) == 0 {
		return nil, fmt.Errorf("%s: no anchor in %d lines: keep health messages, or the events of decided rounds, as they come", path, n-1)
	}
	return a, nil
}

func (a *archive) add(line int, text []byte) error {
	message := struct {
		anchor
		PublicKey []byte `json:"public_key"`
	}{anchor: anchor{line: line}}
	err := json.Unmarshal(text[max(bytes.IndexByte(text, '{'), 0):], &message)
	switch {
	case err != nil && bytes.Contains(text, []byte(`"chain"`)):
		return fmt.Errorf("an anchor that cannot be read: %w", err)
	case err != nil || message.Chain == nil && message.PublicKey == nil:
		a.ignored++
	case message.Chain != nil:
		a.anchors = append(a.anchors, message.anchor)
		if first, m := &a.anchors[0], &message; m.Site != first.Site || m.Table != first.Table || m.Epoch != first.Epoch {
			return fmt.Errorf("an anchor of %s/%s in epoch %s after one of %s/%s in epoch %s: keep those of one table and epoch only",
				m.Site, m.Table, m.Epoch, first.Site, first.Table, first.Epoch)
		}
	case a.key == nil:
		a.key, a.keyLine = message.PublicKey, line
	case !bytes.Equal(a.key, message.PublicKey):
		return fmt.Errorf("the table's key is another one than in line %d: keep the messages of one key only, and find out who changed it", a.keyLine)
	}
	return nil
}

// heads are what the anchors say, in order and each once, if key signed them
// all.
func (a *archive) heads(key ed25519.PublicKey) ([]journal.Head, error) {
	var heads []journal.Head
	for i := range a.anchors {
		c := &a.anchors[i]
		hash, err := hex.DecodeString(c.Chain.Head)
		if err != nil || len(hash) != sha256.Size || !c.Chain.SignedBy(key, &c.Envelope) {
			return nil, fmt.Errorf("%s:%d: the signature is wrong: this line was altered, or it is not of the table that has this key", a.name, c.line)
		}
		heads = append(heads, journal.Head{Seq: c.Chain.Seq, Hash: [sha256.Size]byte(hash)})
	}
	slices.SortFunc(heads, func(a, b journal.Head) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), bytes.Compare(a.Hash[:], b.Hash[:]))
	})
	return slices.Compact(heads), nil
}

// trusted gives the key to check with: the one named, in base64 or as a file
// that holds it so, or else the one that the archive has.
func (a *archive) trusted(named string) (key ed25519.PublicKey, origin string, err error) {
	if named == "" {
		if len(a.key) != ed25519.PublicKeySize {
			return nil, "", fmt.Errorf("%s: no info message with the table's key: name the key with --key", a.name)
		}
		return a.key, fmt.Sprintf("line %d of %s itself: whoever can alter that file can put in his own; one noted elsewhere (--key) proves more", a.keyLine, a.name), nil
	}
	text := []byte(named)
	if key, err = base64.StdEncoding.DecodeString(named); err != nil || len(key) != ed25519.PublicKeySize {
		if text, err = os.ReadFile(named); err != nil {
			return nil, "", fmt.Errorf("--key: neither %d bytes in base64 nor a file: %w", ed25519.PublicKeySize, err)
		}
	}
	key, err = base64.StdEncoding.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, "", fmt.Errorf("--key %s: want the public_key of the table's info, %d bytes in base64", named, ed25519.PublicKeySize)
	}
	return key, "--key", nil
}

// verifyAnchored checks a journal against an archive.
func verifyAnchored(path, archived, key string, out io.Writer) error {
	a, err := readArchive(archived)
	if err != nil {
		return err
	}
	public, origin, err := a.trusted(key)
	if err != nil {
		return err
	}
	heads, err := a.heads(public)
	if err != nil {
		return err
	}
	r, err := journal.Verify(path, heads...)
	if err != nil {
		return err
	}
	if first := &a.anchors[0]; r.Epoch != "" && r.Epoch != first.Epoch {
		return fmt.Errorf("%s is of %s/%s in epoch %s, but this journal's epoch is %s: it is another table's, or was begun anew in the place of that one",
			a.name, first.Site, first.Table, first.Epoch, r.Epoch)
	}
	report := printReport(path, &r, out)
	fmt.Fprintf(out, "key %s from %s\n", base64.StdEncoding.EncodeToString(public), origin)
	agree, pruned := compared(heads, &r)
	fmt.Fprintf(out, "%d anchors, %d of them at events pruned since, which prove nothing; %d other lines\n", len(heads), pruned, a.ignored)
	if n := len(agree); n > 0 {
		fmt.Fprintf(out, "the journal is the one published, up to event %d: %d anchors from event %d on agree\n", agree[n-1].Seq, n, agree[0].Seq)
	} else if report == nil {
		return errors.New("every anchor is at an event pruned since: nothing is proven")
	}
	return report
}

// compared tells which heads the journal still has, up to the first that
// contradicts, and how many it no longer can have.
func compared(heads []journal.Head, r *journal.Report) (agree []journal.Head, pruned int) {
	for _, h := range heads {
		switch {
		case h.Seq < r.FirstSeq:
			pruned++
		case h.Seq < r.Head.Seq || h == r.Head:
			agree = append(agree, h)
		}
	}
	return agree, pruned
}
