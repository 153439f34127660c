package scanner

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"shoed/round"
)

/*
Angel Eye II-EX, card shoe with a built-in reader.

Hardware: a shoe that reads each card as it is drawn and keeps to the draw table
by itself. RS-232, 4800 baud 8N1 (9600 seen), no flow control; in the field often
behind a serial device server in TCP server mode.

Example, D, Player's first card is the eight of spades:

	05 31 44 81 B8 03 34 46
	 |  |  |  |  |  |  +--+--- BCC, two upper-case hex characters
	 |  |  |  |  |  +--------- ETX
	 |  |  +--+--+------------ code, payload of 0 to 6 bytes
	 |  +--------------------- seq: '0' on S, then '1' to '9' round and round
	 +------------------------ ENQ

BCC is the XOR of seq to ETX, both included, ENQ not.

	code  payload      meaning
	S     -            start of communication
	P     -            stand-by
	D     place card   card drawn
	I     place card   card named that D had masked
	R     place card   the held card dealt again
	i     place card   the overdrawn card named
	d     mode  card   card drawn outside the game
	G     verdict      outcome and pairs
	C     -            cut card drawn
	E     error        error raised
	e     error        error cancelled
	L     lock         bit 0: locked
	M     aavvvv       setting: address and value, ASCII

	place    1iii nnnn  iii 0 Player, 1 Banker, 2 burn, 4 first card, 5 burned card
	                    nnnn 1-3 in a hand; 0-10 cards still to burn; of a first card nothing
	mode     1mmm xxxx  mmm 0 lock, 1 error, 2 setting; xxxx an error code, not used
	card     1sss rrrr  sss 1 diamond, 2 club, 3 spade, 4 heart; rrrr 1 ace to 13 king;
	                    80 is masked
	verdict  1ooo 00bp  ooo 1 Player, 2 Tie, 4 Banker, 5 Banker with 6, 7 forced quit;
	                    b Banker pair, p Player pair
	error    1mcc cccc  E: m now in error mode, c code; e: all seven bits are the code

Oddities:
  - Each telegram is sent three times about 50 ms apart (once six times), and a
    read can hold the end of one and the start of the next.
  - A copy is known by seq and bytes together, close in time. Never by the card:
    the same card twice running is legal.
  - Control characters cannot occur within a frame. So one that does ends it, and
    a telegram that follows a torn one is found at its first byte.
  - Noise comes at power-up: ff ff ff ff c5 fc.
  - A d between E 02 and e 02 is the overdrawn card; the capture has mode 2 there.
    Where E 02 was lost, d has the mode it came with, and the gap tells.
  - S restarts seq. Captured is S with '0' and then '1'. After an S with another
    seq both the next and '1' are taken.
  - Nine lost telegrams cannot be seen by seq: round asks after a lost line.
  - Bit errors: XOR finds every damage to one byte of a telegram. One shape is left:
    within an M with free hex characters, a bit that turns an 'E' into ENQ can leave a
    whole C behind it. It shows as a gap.

To the shoe, and its answers (06, or 15 and a code; a register as STX, text, ETX,
BCC), which are counted and dropped:

	02 4F 50 4C 4B 30 32 03 31 42
	 |  +--+  +--+  +--+  |  +--+-- BCC
	 |   |     |     |    +-------- ETX
	 |   |     |     +------------- two digits: LK 01 unlock, 02 lock; EC the error; GP 00
	 |   |     +------------------- LK lock, EC cancel error, GP confirm game process
	 |   +------------------------- OP
	 +----------------------------- STX

The vendor's text leaves STX out of this BCC, its example counts it in.
*/

const angelProtocol = "angel"

const (
	stx = 0x02
	etx = 0x03
	enq = 0x05
	ack = 0x06
	nak = 0x15
)

const (
	angelMaxPayload  = 6 // M
	angelMaxTelegram = 1 + 1 + 1 + angelMaxPayload + 1 + 2
	angelMaxReply    = 32 // a register is a few characters: ample
)

const (
	angelOverdraw = 2         // the error code
	angelCards    = "DIRdiGC" // codes that tell of a card, the cut card included, or of all of them
)

// angelSplit finds frames. Between two bytes it holds an unfinished frame, or a
// run of refused bytes that is not yet reported, never both.
type angelSplit struct {
	offset  int64 // of the next byte
	frame   [angelMaxReply]byte
	n       int // of frame
	etx     int // where it is in frame, 0 before it came
	run     [maxRun]byte
	runN    int
	why     Reason // for the first byte of run
	replies uint64
	garbage uint64
}

// push takes the next byte of the line, which completes at most one piece.
func (s *angelSplit) push(b byte) (p piece, ok bool) {
	s.offset++
	if s.n > 0 {
		why, done := s.grow(b)
		switch {
		case why == 0 && done:
			return s.finish()
		case why == 0:
			return p, false
		}
		s.refuse(why)
		if done {
			return s.flush(s.offset)
		}
	}
	return s.begin(b)
}

// begin looks at a byte outside any frame.
func (s *angelSplit) begin(b byte) (p piece, ok bool) {
	if !angelStarts(b) {
		if s.runN == 0 {
			s.why = Garbage
		}
		s.run[s.runN] = b
		s.runN++
		s.garbage++
		if s.runN < len(s.run) {
			return p, false
		}
		return s.flush(s.offset)
	}
	p, ok = s.flush(s.offset - 1)
	if b == ack {
		s.replies++
	} else {
		s.frame[0], s.n, s.etx = b, 1, 0
	}
	return p, ok
}

// grow adds b to the unfinished frame; done means that its last byte came. A
// reason refuses the frame, and then b is part of it only when done.
func (s *angelSplit) grow(b byte) (why Reason, done bool) {
	switch {
	case b == enq, angelStarts(b) && s.frame[0] != nak:
		return Truncated, false
	case s.frame[0] == nak:
		done = true
	case s.etx > 0:
		if !upperHex(b) {
			return BadChecksum, false
		}
		if done = s.n == s.etx+2; done && !s.sums(b) {
			why = BadChecksum
		}
	default:
		if why = s.fits(b); why != 0 {
			return why, false
		}
		if b == etx {
			s.etx = s.n
		}
	}
	s.frame[s.n] = b
	s.n++
	return why, done
}

// fits says why b cannot be the next byte up to the ETX.
func (s *angelSplit) fits(b byte) Reason {
	least, most := 3, 3+angelMaxPayload
	if s.frame[0] == stx {
		least, most = 2, len(s.frame)-3
	}
	switch {
	case b == etx && s.n >= least:
		return 0
	case b == etx, s.n == most:
		return BadLength
	case b < ' ':
		return BadByte
	case s.frame[0] == enq && s.n == 1 && (b < '0' || b > '9'):
		return BadSeqChar
	}
	return 0
}

// sums compares the BCC, whose second character is b, with the frame.
func (s *angelSplit) sums(b byte) bool {
	x := xor(s.frame[1 : s.etx+1])
	is := func(x byte) bool { return s.frame[s.etx+1] == upperHexText[x>>4] && b == upperHexText[x&0x0f] }
	return is(x) || s.frame[0] == stx && is(x^stx)
}

// finish hands over a whole frame; a reply is only counted.
func (s *angelSplit) finish() (piece, bool) {
	p := piece{bytes: s.frame[:s.n], offset: s.offset - int64(s.n)}
	s.n = 0
	if p.bytes[0] != enq {
		s.replies++
		return piece{}, false
	}
	return p, true
}

// refuse turns the unfinished frame into a run.
func (s *angelSplit) refuse(why Reason) {
	s.why, s.runN = why, copy(s.run[:], s.frame[:s.n])
	s.garbage += uint64(s.n)
	s.n = 0
}

// flush reports the run that ended before the offset end.
func (s *angelSplit) flush(end int64) (piece, bool) {
	p := piece{bytes: s.run[:s.runN], offset: end - int64(s.runN), why: s.why}
	s.runN = 0
	return p, len(p.bytes) > 0
}

func angelStarts(b byte) bool { return b == enq || b == stx || b == ack || b == nak }

// angel is the Decoder.
type angel struct {
	window    time.Duration
	split     angelSplit
	last      [angelMaxTelegram]byte // the telegram before
	lastN     int
	lastAt    int64 // ns since 1970, of its first copy
	overdrawn bool  // between E 02 and e 02
	stats     Stats
}

func newAngel(o Options) *angel { return &angel{window: o.DuplicateWindow} }

func (a *angel) Feed(at time.Time, b []byte, out []Reading) []Reading {
	for _, c := range b {
		switch p, ok := a.split.push(c); {
		case !ok:
		case p.why != 0:
			out = append(out, a.refusal(p, p.why))
		default:
			out = a.telegram(at, p, out)
		}
	}
	return out
}

func (a *angel) Reconnect() {
	if a.split.n > 0 {
		a.split.refuse(Truncated)
	}
}

func (a *angel) Stats() Stats {
	s := a.stats
	s.Replies, s.GarbageBytes = a.split.replies, a.split.garbage
	return s
}

func (a *angel) refusal(p piece, why Reason) Reading {
	a.stats.Refused[why]++
	return Reading{Err: &FrameError{angelProtocol, why, p.offset, bytes.Clone(p.bytes)}}
}

// telegram judges a telegram by the one before it, then decodes it. Refused
// content has its place in the sequence all the same; where it may have been a
// card, the gap says that the round is unproven.
func (a *angel) telegram(at time.Time, p piece, out []Reading) []Reading {
	a.stats.Frames++
	now, same := at.UnixNano(), bytes.Equal(p.bytes, a.last[:a.lastN])
	if same && a.near(now) {
		a.stats.Duplicates++
		return out
	}
	follows := a.follows(p.bytes)
	if !follows && !same && p.bytes[1] == a.last[1] {
		a.stats.Anomalies++
	}
	a.lastN, a.lastAt = copy(a.last[:], p.bytes), now

	in, why := decodeAngel(p.bytes, a.overdrawn)
	if !follows || why != 0 && strings.IndexByte(angelCards, p.bytes[2]) >= 0 {
		a.stats.Gaps++
		out = append(out, Reading{Input: round.Input{At: at, Kind: round.InReader, Reader: round.ReaderGap}})
	}
	if why != 0 {
		return append(out, a.refusal(p, why))
	}
	switch {
	case in.Kind == round.InFault && in.Code == angelOverdraw:
		a.overdrawn = in.On
	case in.Reader == round.ReaderStart:
		a.overdrawn = false
	}
	in.At = at
	return append(out, Reading{Input: in})
}

// near reports whether now is within the window of the telegram before, either
// way: a clock that is set back between two copies makes no second card.
func (a *angel) near(now int64) bool {
	d := now - a.lastAt
	if d < 0 {
		d = -d
	}
	return d >= 0 && d <= int64(a.window)
}

// follows reports whether no telegram can be missing before this one. The first
// of all proves nothing, and S starts anew.
func (a *angel) follows(frame []byte) bool {
	switch seq := frame[1]; {
	case a.lastN == 0, frame[2] == 'S', a.last[2] == 'S' && seq == '1':
		return true
	default:
		return seq == AngelNext(a.last[1])
	}
}

// AngelNext is the sequence character after seq.
func AngelNext(seq byte) byte {
	if seq < '0' || seq >= '9' {
		return '1'
	}
	return seq + 1
}

// decodeAngel reads a telegram whose frame and checksum are good. Every byte is
// checked before a field is taken from it.
func decodeAngel(frame []byte, overdrawn bool) (in round.Input, why Reason) {
	code, payload := frame[2], frame[3:len(frame)-3]
	if why := checkAngel(code, payload); why != 0 {
		return in, why
	}
	switch code {
	case 'S':
		return round.Input{Kind: round.InReader, Reader: round.ReaderStart}, 0
	case 'P':
		return round.Input{Kind: round.InReader, Reader: round.ReaderStandby}, 0
	case 'D', 'I', 'R', 'i':
		return decodeAngelCard(code, payload)
	case 'd':
		return decodeAngelOutside(payload, overdrawn)
	case 'G':
		return decodeAngelVerdict(payload[0])
	case 'C':
		return round.Input{Kind: round.InCut}, 0
	case 'E':
		return round.Input{Kind: round.InFault, Code: payload[0] & 0x3f, On: true}, 0
	case 'e':
		return round.Input{Kind: round.InFault, Code: payload[0] & 0x7f}, 0
	case 'L':
		return round.Input{Kind: round.InLock, On: payload[0]&1 != 0}, 0
	}
	return round.Input{Kind: round.InSetting, On: true, Address: string(payload[:2]), Value: string(payload[2:])}, 0
}

// checkAngel proves length and bits of a payload.
func checkAngel(code byte, payload []byte) Reason {
	length := 2
	switch code {
	case 'S', 'P', 'C':
		length = 0
	case 'G', 'E', 'e', 'L':
		length = 1
	case 'M':
		length = angelMaxPayload
	case 'D', 'I', 'R', 'i', 'd':
	default:
		return BadCode
	}
	if len(payload) != length {
		return BadLength
	}
	for _, b := range payload {
		if code == 'M' && (b < ' ' || b > '~') || code != 'M' && b < 0x80 || code == 'L' && b > 0x81 {
			return BadPayload
		}
	}
	return 0
}

func decodeAngelCard(code byte, payload []byte) (in round.Input, why Reason) {
	in = round.Input{Kind: round.InCard, Again: code == 'R'}
	if code == 'I' || code == 'i' {
		in = round.Input{Kind: round.InShow, Over: code == 'i'}
	}
	if in.To, in.Pos, why = decodeAngelPlace(payload[0]); why != 0 {
		return round.Input{}, why
	}
	in.Card = angelCard(payload[1])
	if in.Card == 0 || in.Card == round.Masked && in.Kind == round.InShow {
		return round.Input{}, BadCard
	}
	return in, 0
}

func decodeAngelPlace(b byte) (to round.To, pos uint8, why Reason) {
	least, most := uint8(1), uint8(3)
	switch b >> 4 & 7 {
	case 0:
		to = round.ToPlayer
	case 1:
		to = round.ToBanker
	case 2, 5:
		to, least, most = round.ToBurn, 0, 10
	case 4:
		return round.ToFirst, 0, 0
	default:
		return 0, 0, BadIntention
	}
	if pos = b & 0x0f; pos < least || pos > most {
		return 0, 0, BadIndex
	}
	return to, pos, 0
}

func decodeAngelOutside(payload []byte, overdrawn bool) (round.Input, Reason) {
	in := round.Input{Kind: round.InCard, Card: angelCard(payload[1])}
	switch mode := payload[0] >> 4 & 7; {
	case in.Card == 0:
		return round.Input{}, BadCard
	case overdrawn:
		in.Outside = round.OutsideOverdraw
	case mode == 0:
		in.Outside = round.OutsideLock
	case mode == 1:
		in.Outside = round.OutsideError
	case mode == 2:
		in.Outside = round.OutsideSetting
	default:
		return round.Input{}, BadMode
	}
	return in, 0
}

func decodeAngelVerdict(b byte) (round.Input, Reason) {
	v := round.Verdict{PlayerPair: b&1 != 0, BankerPair: b&2 != 0}
	switch b >> 4 & 7 {
	case 1:
		v.Outcome = round.PlayerWins
	case 2:
		v.Outcome = round.Tie
	case 4, 5:
		v.Outcome = round.BankerWins
	case 7:
		v = round.Verdict{Quit: true}
	}
	if v.Outcome == 0 && !v.Quit || b&0x0c != 0 {
		return round.Input{}, BadVerdict
	}
	return round.Input{Kind: round.InVerdict, Verdict: v}, 0
}

// angelSuits by the number the shoe gives them.
var angelSuits = [8]round.Suit{1: round.Diamond, 2: round.Club, 3: round.Spade, 4: round.Heart}

// angelCard is the card of a card byte; 0 when it is neither masked nor whole.
func angelCard(b byte) round.Card {
	if b == 0x80 {
		return round.Masked
	}
	return round.NewCard(int(b&0x0f), angelSuits[b>>4&7])
}

func angelCardByte(c round.Card) byte {
	for bits, suit := range angelSuits {
		if c.Known() && suit == c.Suit() {
			return 0x80 | byte(bits)<<4 | byte(c.Rank())
		}
	}
	return 0x80
}

// AppendAngel appends the telegram of a code and its payload to dst as the shoe
// sends it, sense or not. For what the shoe can mean see AngelTelegram.
func AppendAngel(dst []byte, seq, code byte, payload ...byte) []byte {
	dst = append(dst, enq)
	body := len(dst)
	dst = append(append(append(dst, seq, code), payload...), etx)
	return appendBCC(dst, xor(dst[body:]))
}

// AngelTelegram is the telegram by which a shoe says in, the way it was captured
// where there are several. An error means that no telegram says it.
func AngelTelegram(seq byte, in round.Input) ([]byte, error) {
	code, payload := angelPayload(in)
	frame := AppendAngel(nil, seq, code, payload...)
	if seq < '0' || seq > '9' {
		return nil, fmt.Errorf("%s: sequence character %q: use '0' to '9'", angelProtocol, seq)
	}
	said, why := decodeAngel(frame, in.Outside == round.OutsideOverdraw)
	if said.At = in.At; why != 0 || said != in {
		return nil, fmt.Errorf("%s: no telegram says %+v", angelProtocol, in)
	}
	return frame, nil
}

// angelPayload is the inverse of decodeAngel where there is one.
func angelPayload(in round.Input) (code byte, payload []byte) {
	place := []byte{angelPlaceByte(in.To, in.Pos), angelCardByte(in.Card)}
	switch {
	case in.Kind == round.InReader && in.Reader == round.ReaderStart:
		return 'S', nil
	case in.Kind == round.InReader && in.Reader == round.ReaderStandby:
		return 'P', nil
	case in.Kind == round.InCard && in.Outside == round.OutsideOverdraw:
		return 'd', []byte{0xa0, place[1]}
	case in.Kind == round.InCard && in.Outside != 0:
		return 'd', []byte{0x80 | byte(in.Outside-round.OutsideLock)<<4, place[1]}
	case in.Kind == round.InCard && in.Again:
		return 'R', place
	case in.Kind == round.InCard:
		return 'D', place
	case in.Kind == round.InShow && in.Over:
		return 'i', place
	case in.Kind == round.InShow:
		return 'I', place
	case in.Kind == round.InVerdict:
		return 'G', []byte{angelVerdictByte(in.Verdict)}
	case in.Kind == round.InCut:
		return 'C', nil
	case in.Kind == round.InFault && in.On:
		return 'E', []byte{0x80 | in.Code}
	case in.Kind == round.InFault:
		return 'e', []byte{0x80 | in.Code}
	case in.Kind == round.InLock && in.On:
		return 'L', []byte{0x81}
	case in.Kind == round.InLock:
		return 'L', []byte{0x80}
	case in.Kind == round.InSetting:
		return 'M', []byte(in.Address + in.Value)
	}
	return 0, nil
}

func angelPlaceByte(to round.To, pos uint8) byte {
	bits := [...]byte{round.ToPlayer: 0, round.ToBanker: 1, round.ToFirst: 4, round.ToBurn: 5}
	if int(to) >= len(bits) {
		return 0x80
	}
	return 0x80 | bits[to]<<4 | pos&0x0f
}

func angelVerdictByte(v round.Verdict) byte {
	bits := map[round.Outcome]byte{round.PlayerWins: 0x90, round.Tie: 0xa0, round.BankerWins: 0xc0}[v.Outcome]
	if v.Quit {
		bits = 0xf0
	}
	if v.PlayerPair {
		bits |= 1
	}
	if v.BankerPair {
		bits |= 2
	}
	return bits
}

// AngelDo is what a command tells the shoe.
type AngelDo uint8

const (
	AngelUnlock AngelDo = iota + 1
	AngelLock
	AngelCancelError
	AngelConfirm // the game process
)

// AngelCommand is a command to the shoe. Whoever sends it waits about 3 s for the
// answer.
type AngelCommand struct {
	Do            AngelDo
	Error         uint8 // the error to cancel, up to 99; else 0
	BCCWithoutSTX bool  // as the vendor's text has it, instead of its example; never to be tried by itself
}

// Bytes is the command as it goes over the line.
func (c AngelCommand) Bytes() ([]byte, error) {
	kind := map[AngelDo]string{AngelUnlock: "LK01", AngelLock: "LK02", AngelConfirm: "GP00"}[c.Do]
	if c.Do == AngelCancelError && c.Error <= 99 {
		kind = fmt.Sprintf("EC%02d", c.Error)
	} else if c.Error != 0 {
		kind = ""
	}
	if kind == "" {
		return nil, fmt.Errorf("%s: no command %d with error %d", angelProtocol, c.Do, c.Error)
	}
	b := append([]byte{stx, 'O', 'P'}, kind...)
	b = append(b, etx)
	if c.BCCWithoutSTX {
		return appendBCC(b, xor(b[1:])), nil
	}
	return appendBCC(b, xor(b)), nil
}

const upperHexText = "0123456789ABCDEF"

func upperHex(b byte) bool { return b >= '0' && b <= '9' || b >= 'A' && b <= 'F' }

func appendBCC(dst []byte, x byte) []byte {
	return append(dst, upperHexText[x>>4], upperHexText[x&0x0f])
}

// angelState is what a snapshot has besides the counts.
type angelState struct {
	Offset    int64  `json:"offset"`
	Frame     string `json:"frame"` // unfinished, hex
	Run       string `json:"run"`   // refused and not yet reported, hex
	Why       Reason `json:"why,omitempty"`
	Last      string `json:"last"` // telegram, hex
	LastAt    int64  `json:"last_at"`
	Overdrawn bool   `json:"overdrawn"`
}

const angelSnapshotVersion = 2

func (a *angel) Snapshot() []byte {
	s := &a.split
	state := angelState{
		Offset: s.offset, Frame: hex.EncodeToString(s.frame[:s.n]), Run: hex.EncodeToString(s.run[:s.runN]),
		Last: hex.EncodeToString(a.last[:a.lastN]), LastAt: a.lastAt, Overdrawn: a.overdrawn,
	}
	if s.runN > 0 {
		state.Why = s.why
	}
	return takeSnapshot(angelProtocol, angelSnapshotVersion, a.Stats(), state)
}

// Restore takes only what Snapshot writes, byte for byte.
func (a *angel) Restore(b []byte) error {
	stats, shot, err := readSnapshot[angelState](angelProtocol, angelSnapshotVersion, b)
	if err != nil {
		return err
	}
	restored, err := shot.decoder(a.window, stats)
	if err != nil {
		return fmt.Errorf("%s snapshot: %w", angelProtocol, err)
	}
	if !bytes.Equal(restored.Snapshot(), b) {
		return fmt.Errorf("%s snapshot: not in the form in which it is written", angelProtocol)
	}
	*a = *restored
	return nil
}

// decoder builds the decoder that a snapshot describes, and refuses a state that
// no bytes lead to.
func (shot angelState) decoder(window time.Duration, stats Stats) (*angel, error) {
	a := &angel{window: window, lastAt: shot.LastAt, overdrawn: shot.Overdrawn, stats: stats}

	frame, run, last, err := shot.bytes()
	if err != nil {
		return nil, err
	}
	var before angelSplit
	for i, b := range last {
		p, ok := before.push(b)
		if whole := i == len(last)-1; ok != whole || p.why != 0 {
			return nil, fmt.Errorf("last %q is no telegram", shot.Last)
		}
	}
	a.lastN = copy(a.last[:], last)

	s := &a.split
	for _, b := range frame {
		s.push(b) // another frame than this one is found by Restore
	}
	if !angelRun(run, shot.Why) || len(run) > 0 && len(frame) > 0 {
		return nil, fmt.Errorf("run %q is none with reason %v", shot.Run, shot.Why)
	}
	s.runN, s.why = copy(s.run[:], run), shot.Why
	if s.offset = shot.Offset; s.offset < int64(len(frame)+len(run)) {
		return nil, fmt.Errorf("offset %d is within the first frame", shot.Offset)
	}
	s.replies, s.garbage = stats.Replies, stats.GarbageBytes
	return a, nil
}

// angelRun reports whether run can be pending with its reason: a refused frame
// has its start byte in front, and no start byte comes later.
func angelRun(run []byte, why Reason) bool {
	if len(run) == 0 {
		return why == 0
	}
	for _, b := range run[1:] {
		if angelStarts(b) {
			return false
		}
	}
	return len(run) < maxRun && why > 0 && why <= BadChecksum && angelStarts(run[0]) == (why != Garbage)
}

func (shot angelState) bytes() (frame, run, last []byte, err error) {
	for _, field := range []struct {
		to   *[]byte
		text string
	}{{&frame, shot.Frame}, {&run, shot.Run}, {&last, shot.Last}} {
		if *field.to, err = hex.DecodeString(field.text); err != nil {
			return nil, nil, nil, fmt.Errorf("%q: %w", field.text, err)
		}
	}
	return frame, run, last, nil
}
