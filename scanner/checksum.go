package scanner

// checksum proves a frame.
type checksum struct {
	bytes    int // 1 or 2
	lowFirst bool
	of       func([]byte) uint16
}

// checksums by the names of the configuration. The CRCs are those of the
// catalogue of parametrised CRC algorithms (reveng.sourceforge.io), where ccitt_false
// is IBM-3740; their bytes stand as their own protocols send them.
var checksums = map[string]checksum{
	"xor":               {1, false, func(b []byte) uint16 { return uint16(xor(b)) }},
	"sum":               {1, false, sum},
	"crc16_modbus":      {2, true, func(b []byte) uint16 { return crcRight(b, 0xa001, 0xffff) }},
	"crc16_kermit":      {2, true, func(b []byte) uint16 { return crcRight(b, 0x8408, 0) }},
	"crc16_ccitt_false": {2, false, func(b []byte) uint16 { return crcLeft(b, 0x1021, 0xffff) }},
	"crc16_xmodem":      {2, false, func(b []byte) uint16 { return crcLeft(b, 0x1021, 0) }},
}

func xor(b []byte) (x byte) {
	for _, c := range b {
		x ^= c
	}
	return x
}

// sum is modulo 256.
func sum(b []byte) uint16 {
	var s byte
	for _, c := range b {
		s += c
	}
	return uint16(s)
}

// crcLeft takes each byte's highest bit first.
func crcLeft(b []byte, poly, crc uint16) uint16 {
	for _, c := range b {
		crc ^= uint16(c) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ poly*carry
		}
	}
	return crc
}

// crcRight takes each byte's lowest bit first; so poly is reversed.
func crcRight(b []byte, poly, crc uint16) uint16 {
	for _, c := range b {
		crc ^= uint16(c)
		for range 8 {
			carry := crc & 1
			crc = crc>>1 ^ poly*carry
		}
	}
	return crc
}
