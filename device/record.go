package device

import (
	"encoding/binary"
	"fmt"
	"time"
)

// wireRecordBytes is the length of one WireRecord.
const wireRecordBytes = 16

// WireKind says what a WireRecord tells.
type WireKind uint8

const (
	WireActive   WireKind = iota + 1 // an edge: the wire became active
	WireInactive                     // an edge: the wire became inactive
	WireLevels                       // the levels of all wires
	WireUnsteady                     // as WireLevels, but two reads of them differed; the later one
)

// WireRecord is what the bytes of a Line of wires are made of:
//
//	byte 0     Kind
//	byte 1     Wire
//	byte 2-3   Levels, little endian, as are
//	byte 4-7   Seq
//	byte 8-15  Time, in ns
//
// A Seq that is missing is an edge that was lost, or one beyond the wire's Limit.
// But of a request of one wire the kernel numbers edges only when it hands them
// over (edge_irq_thread in gpiolib-cdev.c): those that came before that are one,
// without a gap.
// The kernel may deliver edges of several wires out of order: they are sorted
// within a read, not across reads.
type WireRecord struct {
	Kind   WireKind
	Wire   uint8  // of edges: the wire's place in Options.Wires
	Levels uint16 // of levels: a bit per wire, 1 active
	// Seq is, of an edge, the kernel's number of it in this opening: 1, 2, ...; of
	// levels, the highest number that was read so far, 0 none.
	Seq uint32
	// Time is that of CLOCK_MONOTONIC: the kernel's stamp of an edge; of levels,
	// when they were read.
	Time time.Duration
}

// Append adds the record's bytes to b.
func (r WireRecord) Append(b []byte) []byte {
	b = append(b, byte(r.Kind), r.Wire)
	b = binary.LittleEndian.AppendUint16(b, r.Levels)
	b = binary.LittleEndian.AppendUint32(b, r.Seq)
	return binary.LittleEndian.AppendUint64(b, uint64(r.Time))
}

// ParseWireRecords reads the records in the bytes of one Chunk. Its error names
// the first byte that makes no sense.
func ParseWireRecords(b []byte) ([]WireRecord, error) {
	var records []WireRecord
	for at := 0; at < len(b); at += wireRecordBytes {
		if len(b)-at < wireRecordBytes || WireKind(b[at]) < WireActive || WireKind(b[at]) > WireUnsteady {
			return records, fmt.Errorf("byte %d of %d begins no wire record", at, len(b))
		}
		records = append(records, WireRecord{
			Kind:   WireKind(b[at]),
			Wire:   b[at+1],
			Levels: binary.LittleEndian.Uint16(b[at+2:]),
			Seq:    binary.LittleEndian.Uint32(b[at+4:]),
			Time:   time.Duration(binary.LittleEndian.Uint64(b[at+8:])),
		})
	}
	return records, nil
}
