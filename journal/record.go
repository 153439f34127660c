package journal

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"
)

// Kind says what a record's body is. Its numbers are stored and hashed: never renumber them.
type Kind uint8

// The kinds of record. The zero Kind is none.
const (
	Chunk    Kind = 1 // the raw bytes of one read of a device
	Input    Kind = 2 // one round input as a JSON line
	Event    Kind = 3 // one event as a JSON line
	Snapshot Kind = 4 // opaque state, from which a replay starts
	Note     Kind = 5 // what the journal itself must remember, as a JSON line: a repair, a pruning
	Command  Kind = 6 // what somebody asked for and the reply, as a JSON line; Source finds it again
)

var kindNames = [...]string{Chunk: "chunk", Input: "input", Event: "event", Snapshot: "snapshot", Note: "note", Command: "command"}

// String gives the kind's lower-case name.
func (k Kind) String() string {
	if k.valid() {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

func (k Kind) valid() bool { return k >= Chunk && k <= Command }

// Record is one entry of the journal.
type Record struct {
	No     uint64    // the journal's own number (jseq), contiguous from 1; set by Append
	At     time.Time // when it happened: the stamp of the byte that caused it, kept to the nanosecond
	Kind   Kind
	Source string // device the bytes came from; of a command its sender and id, also with the events it led to; "" otherwise
	Seq    uint64 // number of a public event, contiguous from 1 for the life of the journal; 0 otherwise
	Body   []byte
	Head   [sha256.Size]byte // of a public event: the Hash of its Head; set by Append and Events
}

const (
	maxSource = 255     // bytes; a device's name, with room
	maxBody   = 1 << 20 // bytes; a snapshot is about 4 KB, a chunk less: more is a mistake, and would not fit the memory of a small board
)

// check refuses what the journal could not give back as it was.
func (r *Record) check() error {
	switch {
	case !r.Kind.valid():
		return fmt.Errorf("no such kind of record: %v", r.Kind)
	case r.Seq != 0 && r.Kind != Event:
		return fmt.Errorf("a %v has seq %d: only an event may have one", r.Kind, r.Seq)
	case !time.Unix(0, r.At.UnixNano()).Equal(r.At):
		return fmt.Errorf("time %v does not fit 64 bits of nanoseconds", r.At)
	case len(r.Source) > maxSource:
		return fmt.Errorf("source of %d bytes, at most %d", len(r.Source), maxSource)
	case len(r.Body) > maxBody:
		return fmt.Errorf("body of %d bytes, at most %d", len(r.Body), maxBody)
	}
	return nil
}

// Head is the chain at a public event as outsiders may have it. Kept elsewhere it proves later that the journal, up
// to that event, still is the one it was.
type Head struct {
	Seq  uint64
	Hash [sha256.Size]byte // of the chain, blinded
}

// blind is the journal's secret that makes the chain's hashes fit to be published; doc.go says why and how.
type blind [sha256.Size]byte

func (b blind) hash(h [sha256.Size]byte) [sha256.Size]byte {
	mac := hmac.New(sha256.New, b[:])
	mac.Write(h[:])
	return [sha256.Size]byte(mac.Sum(nil))
}

// tip is a place in the hash chain, a record's number and its hash, and the last public seq up to there: all that is
// needed to take the next record. Its hash stays within the package: outsiders have Heads.
type tip struct {
	No   uint64
	Hash [sha256.Size]byte
	seq  uint64
}

// seed is the tip before record 1. It holds the epoch, so that no two journals share a chain.
func seed(epoch string) tip {
	return tip{Hash: sha256.Sum256([]byte("shoed journal 1\n" + epoch))}
}

// next is the tip after r.
func (t tip) next(r *Record) tip {
	n := tip{No: r.No, Hash: r.digest(t.Hash), seq: t.seq}
	if r.Seq != 0 {
		n.seq = r.Seq
	}
	return n
}

// digest hashes the record and its predecessor's hash; doc.go draws the layout.
func (r *Record) digest(previous [sha256.Size]byte) [sha256.Size]byte {
	const fixed = sha256.Size + 8 + 8 + 1 + 4 + 8 + 4
	b := make([]byte, 0, fixed+len(r.Source)+len(r.Body))
	b = append(b, previous[:]...)
	b = binary.BigEndian.AppendUint64(b, r.No)
	b = binary.BigEndian.AppendUint64(b, uint64(r.At.UnixNano()))
	b = append(b, byte(r.Kind))
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Source)))
	b = append(b, r.Source...)
	b = binary.BigEndian.AppendUint64(b, r.Seq)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Body)))
	b = append(b, r.Body...)
	return sha256.Sum256(b)
}

// accept checks that r, stored with hash, is what follows t, and gives the tip after it. The error is a *Damage.
func (t tip) accept(r *Record, hash []byte) (tip, error) {
	if r.No != t.No+1 {
		return t, &Damage{No: t.No + 1, What: fmt.Sprintf("is missing: record %d follows record %d", r.No, t.No)}
	}
	n := t.next(r)
	if !bytes.Equal(n.Hash[:], hash) {
		return t, &Damage{No: r.No, What: "does not match its hash: it, its hash or its place was changed"}
	}
	if r.Seq != 0 && r.Seq != t.seq+1 {
		return t, &Damage{No: r.No, What: fmt.Sprintf("has seq %d where %d was due", r.Seq, t.seq+1)}
	}
	return n, nil
}
