package scanner

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// maxCaptureLine bounds a line of a capture: the hex of a read of 16 KB, four
// times what the kernel hands over at once.
const maxCaptureLine = 64 << 10

// ParseCapture reads a capture and calls fn for each read in it.
//
// A line is one read in hex, of either case, with spaces between the bytes or
// not. @N before it is its time in milliseconds from the start, never less than
// the one before; ms is -1 where there is none. # begins a comment, and empty
// lines say nothing. The bytes are fn's to keep.
//
// Errors, fn's own too, name the line.
func ParseCapture(r io.Reader, fn func(ms int64, line int, b []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxCaptureLine)
	line, latest := 0, int64(0)
	for lines.Scan() {
		line++
		ms, b, err := parseRead(lines.Bytes())
		switch {
		case err != nil:
		case ms >= 0 && ms < latest:
			err = fmt.Errorf("@%d is before @%d", ms, latest)
		case len(b) > 0:
			latest = max(latest, ms)
			err = fn(ms, line, b)
		}
		if err != nil {
			return fmt.Errorf("capture line %d: %w", line, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("capture line %d: %w", line+1, err)
	}
	return nil
}

// parseRead reads one line; b is empty when it holds no read.
func parseRead(text []byte) (ms int64, b []byte, err error) {
	text, _, _ = bytes.Cut(text, []byte("#"))
	words := bytes.Fields(text)
	ms = -1
	if len(words) > 0 && words[0][0] == '@' {
		if ms, err = parseMS(string(words[0][1:])); err != nil {
			return 0, nil, err
		}
		if words = words[1:]; len(words) == 0 {
			return 0, nil, errors.New("a time without bytes")
		}
	}
	for _, word := range words {
		if b, err = hex.AppendDecode(b, word); err != nil {
			return 0, nil, fmt.Errorf("%q: %w", word, err)
		}
	}
	return ms, b, nil
}

// parseMS takes digits only, up to what a time.Duration holds.
func parseMS(digits string) (int64, error) {
	ms, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || ms > math.MaxInt64/uint64(time.Millisecond) {
		return 0, fmt.Errorf("@%s is no number of milliseconds", digits)
	}
	return int64(ms), nil
}
