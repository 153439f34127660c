package scanner

// Frame says how a generic reader sends a code. Its fields are the keys of the
// configuration; an empty one means what is written first, or that the framing
// has no such part.
//
//	framing  what a frame is made of
//	line     [start] payload [checksum] CR, LF or both
//	stx_etx  start payload end, the checksum before the end or after it
//	fixed    start payload [checksum] [end]
//	length   start length payload [checksum] [end]; length is one byte
//
// Only fixed and length carry any byte. The others carry printable characters.
type Frame struct {
	Framing string // line, stx_etx, fixed or length; never empty
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

	CodeForm   string // text, printable characters; digits 0 to 9; hex digits, two a byte; binary
	CodeOffset int    // where in the payload the code stands
	CodeBytes  int    // how many bytes of the payload it is, two for each byte of its own in hex; 0 is all from CodeOffset on
}
