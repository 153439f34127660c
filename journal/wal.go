package journal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Layout of SQLite's write-ahead log (https://sqlite.org/fileformat2.html, section 4): a header, then frames of a
// header and one page. A frame counts when its salts are the header's and the running checksum fits; a transaction
// counts when its last frame, the one that tells the database size, does.
const (
	walHeader   = 32
	frameHeader = 24
	walMagic    = 0x377f0682 // the lowest bit says that checksums read big-endian words
	walVersion  = 3007000
)

// walScan is what a write-ahead log holds.
type walScan struct {
	frames uint32 // frames up to the last whole transaction: what SQLite will use
	end    int64  // bytes up to there
	torn   int64  // bytes after that which belong to no whole transaction
	broken uint32 // number of the first bad frame although a later transaction was acknowledged; 0 when sound
	header bool   // the header is bad although frames follow: nothing behind it can be trusted
	salts  [8]byte
}

// damage tells whether acknowledged records are lost in the log, which a crash cannot do.
func (s walScan) damage() error {
	switch {
	case s.header:
		return &Damage{What: "the write-ahead log has a damaged header: the records in it are lost"}
	case s.broken != 0:
		return &Damage{What: fmt.Sprintf("the write-ahead log is damaged at frame %d, before transactions that were acknowledged", s.broken)}
	}
	return nil
}

// scanWAL reads a write-ahead log as SQLite's recovery does, and beyond: it counts what recovery drops and finds out
// whether a crash can explain it.
//
// A transaction begins only after the one before was synced. So a commit frame at or after the first bad frame that
// is itself followed by a frame of the same log was acknowledged, and the bad frame is damage. What ends the log
// after the bad frame is a write that a crash cut: torn.
func scanWAL(r io.Reader) (walScan, error) {
	var s walScan
	in := bufio.NewReaderSize(r, 64<<10)
	var head [walHeader]byte
	n, err := io.ReadFull(in, head[:])
	if err != nil {
		s.torn = int64(n)
		return s, tolerateEOF(err)
	}
	page, sum, ok := parseWALHeader(head[:])
	if !ok {
		rest, written, err := drain(in)
		s.torn, s.header = walHeader+rest, written
		return s, err
	}
	copy(s.salts[:], head[16:24])
	s.end = walHeader
	return s, s.readFrames(in, page, sum)
}

func (s *walScan) readFrames(in io.Reader, page int, sum walSum) error {
	frame := make([]byte, frameHeader+page)
	intact, committed := true, false // committed: a commit frame was met at or after the first bad one
	var bad uint32                   // the first bad one
	for i := uint32(1); ; i++ {
		n, err := io.ReadFull(in, frame)
		if err != nil {
			if n < 16 || [8]byte(frame[8:16]) == s.salts {
				s.torn += int64(n)
			}
			return tolerateEOF(err)
		}
		ours := [8]byte(frame[8:16]) == s.salts
		commit := ours && binary.BigEndian.Uint32(frame[4:]) != 0
		if intact {
			intact, bad = ours && binary.BigEndian.Uint32(frame) != 0 && sum.frame(frame), i
		}
		switch {
		case intact && commit:
			s.frames, s.end, s.torn = i, walHeader+int64(i)*int64(len(frame)), 0
		case ours:
			s.torn += int64(len(frame))
			if committed {
				s.broken = bad
			}
			committed = committed || !intact && commit
		}
	}
}

// drain reads r to its end and tells its length and whether anything but zeros was in it: a crash may leave a file
// longer than what was written.
func drain(r *bufio.Reader) (n int64, written bool, err error) {
	for {
		b, err := r.ReadByte()
		if err != nil {
			return n, written, tolerateEOF(err)
		}
		n++
		written = written || b != 0
	}
}

func tolerateEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// parseWALHeader gives the page size and the checksum so far.
func parseWALHeader(b []byte) (page int, sum walSum, ok bool) {
	magic := binary.BigEndian.Uint32(b)
	if magic&^1 != walMagic || binary.BigEndian.Uint32(b[4:]) != walVersion {
		return 0, sum, false
	}
	sum.order = binary.ByteOrder(binary.LittleEndian)
	if magic&1 != 0 {
		sum.order = binary.BigEndian
	}
	size := binary.BigEndian.Uint32(b[8:])
	if size < 512 || size > 65536 || size&(size-1) != 0 {
		return 0, sum, false
	}
	sum.add(b[:24])
	return int(size), sum, sum.is(b[24:])
}

// walSum is the log's running checksum.
type walSum struct {
	order  binary.ByteOrder
	s0, s1 uint32
}

func (s *walSum) add(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		s.s0 += s.order.Uint32(b) + s.s1
		s.s1 += s.order.Uint32(b[4:]) + s.s0
	}
}

func (s *walSum) is(b []byte) bool {
	return binary.BigEndian.Uint32(b) == s.s0 && binary.BigEndian.Uint32(b[4:]) == s.s1
}

// frame takes in one frame and tells whether its checksum fits.
func (s *walSum) frame(b []byte) bool {
	s.add(b[:8])
	s.add(b[frameHeader:])
	return s.is(b[16:24])
}

// settleWAL makes the write-ahead log's whole transactions durable and cuts what follows them. It must run before
// SQLite opens the journal and only while nobody writes.
//
// SQLite takes a log as it reads it. But what reads well may be in the page cache alone, when the process died
// between write and sync, or when a sync failed and the kernel forgot that the pages were dirty. So the bytes are
// written again in their place, which changes nothing, and synced. A damaged log is left untouched and is the error.
func settleWAL(path string) (walScan, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return walScan{}, nil
	}
	if err != nil {
		return walScan{}, err
	}
	defer f.Close()
	s, err := scanWAL(f)
	if err == nil {
		err = s.damage()
	}
	if err != nil {
		return s, err
	}
	if err := rewrite(f, s.end); err != nil {
		return s, err
	}
	if err := f.Truncate(s.end); err != nil {
		return s, err
	}
	return s, f.Sync()
}

// rewrite writes the first n bytes of f in their own place.
func rewrite(f *os.File, n int64) error {
	b := make([]byte, 64<<10)
	for off := int64(0); off < n; {
		part := b[:min(int64(len(b)), n-off)]
		if _, err := f.ReadAt(part, off); err != nil {
			return err
		}
		if _, err := f.WriteAt(part, off); err != nil {
			return err
		}
		off += int64(len(part))
	}
	return nil
}
