package scanner

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Frame says how a generic reader sends a code. Its fields are the keys of the
// configuration; an empty one means what is written first, or that the framing
// has no such part.
//
//	framing  what a frame is made of
//	line     [start] payload [checksum] CR, LF or both
//	stx_etx  start payload end, the checksum before the end or after it
//	fixed    start payload, a checksum or an end or both
//	length   start length payload, a checksum or an end or both; length is one byte
//
// Only the payload of fixed and length may be any bytes. The others carry
// printable characters.
type Frame struct {
	Framing string // line, stx_etx, fixed or length
	Start   string // 1 to 4 bytes in hex, such as "AA55"; 02 by default of stx_etx
	End     string // one byte in hex; 03 by default of stx_etx; of line none

	// LengthCounts names the parts that the length byte counts, with spaces:
	// start, length, payload, checksum, end. By default payload.
	LengthCounts string

	// PayloadBytes is how long the payload of a card's frame is: one that is
	// longer or shorter is refused.
	PayloadBytes int

	Checksum      string // none, xor, sum, crc16_modbus, crc16_ccitt_false, crc16_xmodem or crc16_kermit
	ChecksumForm  string // binary, or hex digits of either case
	ChecksumOrder string // of a CRC: high_first or low_first; by default low_first of modbus and kermit
	ChecksumPlace string // before_end or after_end; never empty where there are both an end and a checksum

	// ChecksumCovers names the parts that it is reckoned from, with spaces, in the
	// order of the frame: start, length, payload, end. By default payload. decoded
	// instead of payload is the bytes that the payload's hex digits stand for.
	ChecksumCovers string

	CodeForm   string // text, characters as they are; hex digits, two a byte; binary
	CodeOffset int    // where in the payload the code stands
	CodeBytes  int    // how many bytes of the payload it is, in hex two for each of its own; 0 is all from CodeOffset on
}

// part of a frame.
type part uint8

const (
	startPart part = iota
	lengthPart
	payloadPart
	checksumPart
	endPart
	parts = iota
)

var partText = [parts]string{"start", "length", "payload", "checksum", "end"}

// span is where in a frame something stands.
type span struct{ from, to int }

func (s span) of(b []byte) []byte { return b[s.from:s.to] }

func (s span) bytes() int { return s.to - s.from }

const maxStart = 4 // bytes: more do not make it more certain

// shape is a Frame that makes sense. Every frame is as long as every other: so
// one that was damaged never hides the next one from its last byte on.
type shape struct {
	line    bool // line ends part the frames
	text    bool // they have printable characters only, but where span says
	start   []byte
	end     []byte // one byte, or none
	length  byte   // of lengthPart
	spans   [parts]span
	n       int // bytes of a frame, without a line end
	sum     checksum
	sumHex  bool
	covers  []part
	decoded bool // payload in covers is what its digits stand for
	code    span
	codeHex bool
}

// newShape names the first field that makes no sense, and says what to write.
func newShape(f Frame) (*shape, error) {
	s := new(shape)
	for _, take := range []func(*Frame) error{s.takeConstants, s.takeChecksum, s.takeLayout, s.takeLength, s.takeCovers, s.takeCode} {
		if err := take(&f); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *shape) takeConstants(f *Frame) (err error) {
	switch f.Framing {
	case "line":
		s.line, s.text = true, true
	case "stx_etx":
		s.text = true
		f.Start, f.End = cmp.Or(f.Start, "02"), cmp.Or(f.End, "03")
	case "fixed", "length":
	default:
		return fmt.Errorf("framing %q is unknown: write line, stx_etx, fixed or length", f.Framing)
	}
	if s.start, err = hex.DecodeString(f.Start); err != nil || len(s.start) > maxStart {
		return fmt.Errorf("frame_start %q: write 1 to %d bytes in hex, such as AA55", f.Start, maxStart)
	}
	if s.end, err = hex.DecodeString(f.End); err != nil || len(s.end) > 1 {
		return fmt.Errorf("frame_end %q: write one byte in hex, such as 03", f.End)
	}
	switch {
	case s.line && len(s.end) > 0:
		return errors.New("frame_end: a line ends with CR, LF or both: leave it out, or write another framing")
	case s.line && slices.ContainsFunc(s.start, unprintable):
		return fmt.Errorf("frame_start %q: a line has printable characters only", f.Start)
	case !s.line && len(s.start) == 0:
		return fmt.Errorf("frame_start: framing %s needs one: write the bytes that every frame begins with", f.Framing)
	case s.text && !s.line && (carries(s.start[0]) || carries(s.end[0]) || s.start[0] == s.end[0]):
		return fmt.Errorf("frame_start %s, frame_end %s: in framing stx_etx they must differ, and be neither letter nor digit", f.Start, f.End)
	}
	return nil
}

// carries tells a character that a code or a checksum in hex may have.
func carries(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

func (s *shape) takeChecksum(f *Frame) error {
	f.Checksum, f.ChecksumForm = cmp.Or(f.Checksum, "none"), cmp.Or(f.ChecksumForm, "binary")
	f.ChecksumCovers = cmp.Or(f.ChecksumCovers, "payload")
	if f.Checksum == "none" {
		if f.ChecksumForm != "binary" || f.ChecksumOrder != "" || f.ChecksumPlace != "" || f.ChecksumCovers != "payload" {
			return errors.New("checksum is none: write which, or leave checksum_form, checksum_order, checksum_place and checksum_covers out")
		}
		if !s.text && len(s.end) == 0 {
			return fmt.Errorf("checksum is none: with framing %s write which, or frame_end; else nothing proves a frame", f.Framing)
		}
		return nil
	}
	var known bool
	if s.sum, known = checksums[f.Checksum]; !known {
		return fmt.Errorf("checksum %q is unknown: write none, %s", f.Checksum, list(slices.Sorted(maps.Keys(checksums))))
	}
	switch {
	case f.ChecksumOrder != "" && s.sum.bytes == 1:
		return fmt.Errorf("checksum_order: %s has one byte: leave it out", f.Checksum)
	case f.ChecksumOrder == "low_first", f.ChecksumOrder == "high_first":
		s.sum.lowFirst = f.ChecksumOrder == "low_first"
	case f.ChecksumOrder != "":
		return fmt.Errorf("checksum_order %q: write high_first or low_first", f.ChecksumOrder)
	}
	switch s.sumHex = f.ChecksumForm == "hex"; {
	case !s.sumHex && f.ChecksumForm != "binary":
		return fmt.Errorf("checksum_form %q: write binary or hex", f.ChecksumForm)
	case !s.sumHex && s.line:
		return errors.New("checksum_form binary: it could be a line end: write hex, or another framing")
	}
	return nil
}

// takeLayout gives each part its place.
func (s *shape) takeLayout(f *Frame) error {
	order := []part{startPart, lengthPart, payloadPart, checksumPart, endPart}
	bytes := [parts]int{startPart: len(s.start), payloadPart: f.PayloadBytes, checksumPart: s.sum.bytes, endPart: len(s.end)}
	if f.Framing == "length" {
		bytes[lengthPart] = 1
	}
	if s.sumHex {
		bytes[checksumPart] *= 2
	}
	switch both := bytes[checksumPart] > 0 && bytes[endPart] > 0; {
	case !both && f.ChecksumPlace != "":
		return errors.New("checksum_place: it says on which side of frame_end the checksum stands: write a frame_end, or leave it out")
	case !both, f.ChecksumPlace == "before_end":
	case f.ChecksumPlace == "after_end":
		order[3], order[4] = endPart, checksumPart
	default:
		return fmt.Errorf("checksum_place %q: write before_end or after_end", f.ChecksumPlace)
	}
	if f.ChecksumPlace == "before_end" && s.text && !s.sumHex {
		return errors.New("checksum_form binary: before the end it could look like it: write hex, or another framing")
	}
	for _, p := range order {
		s.spans[p] = span{s.n, s.n + bytes[p]}
		s.n += bytes[p]
	}
	if f.PayloadBytes < 1 || s.n >= maxRun {
		return fmt.Errorf("payload_bytes %d: write at least 1; and the whole frame, now %d bytes, has at most %d", f.PayloadBytes, s.n, maxRun-1)
	}
	return nil
}

// takeLength gives the length byte its value.
func (s *shape) takeLength(f *Frame) error {
	f.LengthCounts = cmp.Or(f.LengthCounts, "payload")
	if f.Framing != "length" {
		if f.LengthCounts != "payload" {
			return fmt.Errorf("length_counts: framing %s has no length byte: leave it out", f.Framing)
		}
		return nil
	}
	counted, err := s.named(f.LengthCounts)
	if err != nil {
		return fmt.Errorf("length_counts %q: %w", f.LengthCounts, err)
	}
	for _, p := range counted {
		s.length += byte(s.spans[p].bytes())
	}
	return nil
}

// takeCovers says what the checksum is reckoned from.
func (s *shape) takeCovers(f *Frame) (err error) {
	covers := f.ChecksumCovers
	if s.decoded = slices.Contains(strings.Fields(covers), "decoded"); s.decoded {
		covers = strings.Replace(covers, "decoded", "payload", 1)
		if f.CodeForm != "hex" || f.PayloadBytes%2 != 0 {
			return errors.New("checksum_covers: decoded needs code_form hex, and a payload of hex digits in pairs")
		}
	}
	if s.covers, err = s.named(covers); err == nil && slices.Contains(s.covers, checksumPart) {
		err = errors.New("a checksum does not cover itself")
	}
	if at := s.spans[checksumPart].from; err == nil && s.sum.bytes > 0 && s.spans[s.covers[len(s.covers)-1]].to > at {
		err = errors.New("the end comes after it")
	}
	if err != nil {
		return fmt.Errorf("checksum_covers %q: %w", f.ChecksumCovers, err)
	}
	return nil
}

// named are parts that this frame has, the payload among them, in its order.
func (s *shape) named(words string) (named []part, err error) {
	for word := range strings.FieldsSeq(words) {
		p := part(slices.Index(partText[:], word))
		switch {
		case int(p) >= parts || s.spans[p].bytes() == 0:
			return nil, fmt.Errorf("there is no %s in this frame", word)
		case len(named) > 0 && s.spans[p].from < s.spans[named[len(named)-1]].to:
			return nil, errors.New("name each part once, in the order of the frame")
		}
		named = append(named, p)
	}
	if !slices.Contains(named, payloadPart) {
		return nil, errors.New("name the payload too")
	}
	return named, nil
}

func (s *shape) takeCode(f *Frame) error {
	form := cmp.Or(f.CodeForm, "text")
	s.codeHex = form == "hex"
	switch {
	case form != "text" && form != "hex" && form != "binary":
		return fmt.Errorf("code_form %q: write text, hex or binary", f.CodeForm)
	case form == "binary" && s.text:
		return fmt.Errorf("code_form binary: framing %s carries characters: write text or hex, or framing fixed or length", f.Framing)
	}
	bytes := f.CodeBytes
	if bytes == 0 {
		bytes = f.PayloadBytes - f.CodeOffset
	}
	if f.CodeOffset < 0 || bytes < 1 || f.CodeOffset+bytes > f.PayloadBytes {
		return fmt.Errorf("code_offset %d, code_bytes %d: the code does not lie within the payload of %d bytes", f.CodeOffset, f.CodeBytes, f.PayloadBytes)
	}
	if s.codeHex && bytes%2 != 0 {
		return fmt.Errorf("code_bytes %d: hex digits come in pairs", bytes)
	}
	from := s.spans[payloadPart].from + f.CodeOffset
	if s.code = (span{from, from + bytes}); s.codeBytes() > maxCodeBytes {
		return fmt.Errorf("code_bytes %d: a code has at most %d bytes", bytes, maxCodeBytes)
	}
	return nil
}

// codeBytes is how many bytes a code has.
func (s *shape) codeBytes() int {
	if s.codeHex {
		return s.code.bytes() / 2
	}
	return s.code.bytes()
}

// frame looks for a frame at the beginning of b: n is its length, 0 while more
// must come. A reason refuses it: Garbage where none begins, BadChecksum where one
// has the right shape.
func (s *shape) frame(b []byte) (n int, why Reason) {
	for i, c := range b[:min(len(b), s.n)] {
		if why := s.fits(i, c); why != 0 {
			return 0, why
		}
	}
	switch {
	case len(b) < s.n:
		return 0, 0
	case !s.proves(b):
		return 0, BadChecksum
	}
	return s.n, 0
}

// whole is frame for a line.
func (s *shape) whole(b []byte) Reason {
	if len(b) != s.n {
		return BadLength
	}
	_, why := s.frame(b)
	return why
}

// fits says why c cannot be byte i of a frame.
func (s *shape) fits(i int, c byte) Reason {
	p := part(slices.IndexFunc(s.spans[:], func(s span) bool { return i >= s.from && i < s.to }))
	switch {
	case p == startPart && c != s.start[i]:
		return Garbage
	case p == startPart, p == endPart && c == s.end[0], p == lengthPart && c == s.length, p == checksumPart && !s.sumHex:
		return 0
	case p == lengthPart, !s.text && p == endPart:
		return BadLength
	case !s.text:
		return 0
	case !s.line && c == s.start[0]:
		return Truncated
	case unprintable(c) && (s.line || c != s.end[0]):
		return BadByte
	case p == endPart, !s.line && c == s.end[0]:
		return BadLength
	}
	return 0
}

// proves reckons the checksum of a frame.
func (s *shape) proves(b []byte) bool {
	if s.sum.bytes == 0 {
		return true
	}
	var covered []byte
	for _, p := range s.covers {
		part, err := s.spans[p].of(b), error(nil)
		if p == payloadPart && s.decoded {
			if part, err = hex.DecodeString(string(part)); err != nil {
				return false
			}
		}
		covered = append(covered, part...)
	}
	given := s.spans[checksumPart].of(b)
	if s.sumHex {
		var err error
		if given, err = hex.DecodeString(string(given)); err != nil {
			return false
		}
	}
	sum := s.sum.of(covered)
	switch want := []byte{byte(sum >> 8), byte(sum)}; {
	case s.sum.bytes == 1:
		return given[0] == want[1]
	case s.sum.lowFirst:
		return given[0] == want[1] && given[1] == want[0]
	default:
		return bytes.Equal(given, want)
	}
}

// codeIn is the code in a frame, "" when its hex digits are none.
func (s *shape) codeIn(frame []byte) string {
	code := s.code.of(frame)
	if !s.codeHex {
		return codeOf(code)
	}
	if _, err := hex.DecodeString(string(code)); err != nil {
		return ""
	}
	return strings.ToUpper(string(code))
}

// begins reports whether a frame may begin at the beginning of b.
func (s *shape) begins(b []byte) bool {
	n := min(len(b), len(s.start))
	return bytes.Equal(b[:n], s.start[:n])
}

// next is where in b, behind its first byte, the next frame may begin.
func (s *shape) next(b []byte) int {
	for i := 1; i < len(b); i++ {
		if s.begins(b[i:]) {
			return i
		}
	}
	return len(b)
}

// frames is the splitter of every framing but lines. It looks for the next frame
// byte by byte: what a refused one may hide is looked at again.
type frames struct {
	held
	shape *shape
}

func (f *frames) push(b byte, out []piece) []piece {
	out = f.refuseCut(out)
	junk := 0 // bytes at the beginning of what is held, with which no frame begins
	if !f.shape.begins(f.Bytes) {
		junk = len(f.Bytes)
	}
	f.Offset++
	f.Bytes = append(f.Bytes, b)
	for junk < len(f.Bytes) {
		n, why := f.shape.frame(f.Bytes[junk:])
		if why == Garbage {
			if junk++; junk == maxRun {
				out, junk = append(out, f.take(junk, Garbage)), 0
			}
			continue
		}
		if junk > 0 {
			out, junk = append(out, f.take(junk, Garbage)), 0
		}
		switch {
		case why != 0:
			out = append(out, f.take(f.shape.next(f.Bytes), why))
		case n == 0:
			return out
		default:
			out = append(out, f.take(n, 0))
		}
	}
	return out
}
