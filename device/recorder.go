package device

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Record is the line l, of which each read is written to w too, as a line of a
// capture: @, the milliseconds since the first, and the bytes in hex. A read that
// cannot be written is an error of Read.
func Record(l Line, w io.Writer) Line { return &recorder{Line: l, w: w} }

type recorder struct {
	Line
	w     io.Writer
	start time.Time // of the first read
}

func (r *recorder) Read(ctx context.Context) (Chunk, error) {
	c, err := r.Line.Read(ctx)
	if err != nil {
		return c, err
	}
	if r.start.IsZero() {
		r.start = c.At
	}
	if _, err := fmt.Fprintf(r.w, "@%d %x\n", max(0, c.At.Sub(r.start)).Milliseconds(), c.Bytes); err != nil {
		return Chunk{}, fmt.Errorf("recording: %w", err)
	}
	return c, nil
}
