package device

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// chunks is a line that gives these and then is unplugged.
type chunks []Chunk

func (c *chunks) Read(context.Context) (Chunk, error) {
	if len(*c) == 0 {
		return Chunk{}, ErrUnplugged
	}
	first := (*c)[0]
	*c = (*c)[1:]
	return first, nil
}

func (c *chunks) Write(context.Context, []byte) error { return nil }
func (c *chunks) Close() error                        { return nil }

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestRecordWritesACapture(t *testing.T) {
	start := time.Now()
	given := chunks{{start, []byte{1, 2}}, {start.Add(1999 * time.Microsecond), []byte{0xff}}, {start.Add(time.Minute), []byte("A")}}
	var text strings.Builder
	l := Record(&given, &text)
	for _, want := range []string{"\x01\x02", "\xff", "A"} {
		if c, err := l.Read(wait(t)); err != nil || string(c.Bytes) != want {
			t.Errorf("%q, %v", c.Bytes, err)
		}
	}
	if _, err := l.Read(wait(t)); !errors.Is(err, ErrUnplugged) {
		t.Error(err)
	}
	if want := "@0 0102\n@1 ff\n@60000 41\n"; text.String() != want {
		t.Errorf("got %q, want %q", text.String(), want)
	}
	given = chunks{{start, []byte{1}}}
	if _, err := Record(&given, fullDisk{}).Read(wait(t)); err == nil || !strings.Contains(err.Error(), "recording: no space left") {
		t.Error(err)
	}
}
