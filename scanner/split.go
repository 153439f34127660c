package scanner

import (
	"bytes"
	"encoding/hex"
	"fmt"
)

// maxRun bounds the bytes that wait to become a frame, and those of one report:
// every frame is shorter, and a wrong line shows within 0.2 s at 4800 baud.
const maxRun = 64

// piece of a line: a whole frame, or refused bytes.
type piece struct {
	bytes  []byte
	offset int64  // of its first byte
	why    Reason // 0 for a frame
}

// splitter finds frames in the bytes of a line.
type splitter interface {
	// push takes the next byte and appends the pieces that it completes.
	push(b byte, out []piece) []piece
	// state is all that it knows between two bytes.
	state() *held
}

// held is what a splitter has not handed over yet, in the form of a snapshot.
type held struct {
	Offset int64    `json:"offset"` // of the next byte
	Bytes  hexBytes `json:"line"`   // the latest ones, fewer than maxRun
	Long   bool     `json:"long"`   // they end a line of which a piece was refused already
	Cut    bool     `json:"cut"`    // the connection was lost after them
}

func (h *held) state() *held { return h }

// take hands over the first n bytes.
func (h *held) take(n int, why Reason) piece {
	p := piece{bytes.Clone(h.Bytes[:n]), h.Offset - int64(len(h.Bytes)), why}
	h.Bytes = append(h.Bytes[:0], h.Bytes[n:]...)
	return p
}

// reconnect says that the next byte is that of a new connection.
func (h *held) reconnect() {
	if h.Cut = len(h.Bytes) > 0; !h.Cut {
		h.Long = false
	}
}

// refuseCut refuses what a lost connection left behind.
func (h *held) refuseCut(out []piece) []piece {
	if !h.Cut {
		return out
	}
	h.Cut, h.Long = false, false
	return append(out, h.take(len(h.Bytes), Truncated))
}

// resume lets a fresh splitter continue from what another one held. An error
// means that no bytes lead there.
func resume(s splitter, from held) error {
	h := s.state()
	h.Long = from.Long
	whole := false
	for _, b := range from.Bytes {
		whole = whole || len(s.push(b, nil)) > 0
	}
	if whole || !bytes.Equal(h.Bytes, from.Bytes) || from.Offset < int64(len(from.Bytes)) || from.Cut && len(from.Bytes) == 0 {
		return fmt.Errorf("no bytes leave %q behind", from.Bytes)
	}
	*h = from
	return nil
}

// lines is the splitter of text lines, which CR, LF or both end. An empty line is
// none. Of a line that is too long every piece is refused, its last one too.
type lines struct{ held }

func (l *lines) push(b byte, out []piece) []piece {
	out = l.refuseCut(out)
	if b != '\r' && b != '\n' {
		l.Offset++
		if l.Bytes = append(l.Bytes, b); len(l.Bytes) == maxRun {
			l.Long = true
			out = append(out, l.take(maxRun, BadLength))
		}
		return out
	}
	var why Reason
	if l.Long {
		why = BadLength
	}
	if n := len(l.Bytes); n > 0 {
		out = append(out, l.take(n, why))
	}
	l.Long = false
	l.Offset++
	return out
}

// hexBytes are bytes that a snapshot has as hex digits.
type hexBytes []byte

func (b hexBytes) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, b), nil }

func (b *hexBytes) UnmarshalText(text []byte) (err error) {
	*b, err = hex.AppendDecode(nil, text)
	return err
}
