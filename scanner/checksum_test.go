package scanner

import (
	"slices"
	"strings"
	"testing"
)

// The check values are those of the catalogue of parametrised CRC algorithms for
// the digits 1 to 9; those of xor and sum are reckoned by hand.
func TestChecksumCheckValues(t *testing.T) {
	check := []byte("123456789")
	want := map[string]uint16{
		"xor": 0x31, "sum": 0xdd,
		"crc16_modbus": 0x4b37, "crc16_kermit": 0x2189, "crc16_ccitt_false": 0x29b1, "crc16_xmodem": 0x31c3,
	}
	for name, c := range checksums {
		if got := c.of(check); got != want[name] {
			t.Errorf("%s is %04X, want %04X", name, got, want[name])
		}
		if c.bytes == 1 && c.of(check) > 0xff {
			t.Errorf("%s does not fit its byte", name)
		}
	}
	if len(want) != len(checksums) {
		t.Errorf("%d checksums, %d check values", len(checksums), len(want))
	}
}

// dumbChecksum reckons with strings of bits: by counting, by adding as on paper,
// by long division.
func dumbChecksum(name string, b []byte) uint16 {
	switch name {
	case "xor":
		var x uint16
		for bit := range 8 {
			ones := 0
			for _, c := range b {
				ones += int(c>>bit) & 1
			}
			x |= uint16(ones%2) << bit
		}
		return x
	case "sum":
		total := 0
		for _, c := range b {
			total += int(c)
		}
		return uint16(total % 256)
	case "crc16_modbus":
		return divided(b, "1 1000 0000 0000 0101", "1111111111111111", true)
	case "crc16_kermit":
		return divided(b, "1 0001 0000 0010 0001", "0000000000000000", true)
	case "crc16_ccitt_false":
		return divided(b, "1 0001 0000 0010 0001", "1111111111111111", false)
	case "crc16_xmodem":
		return divided(b, "1 0001 0000 0010 0001", "0000000000000000", false)
	}
	panic(name)
}

// divided is the remainder of the bits of b, the first ones turned where first has
// a 1, followed by 16 zeros.
func divided(b []byte, divisor, first string, reflected bool) uint16 {
	poly := strings.ReplaceAll(divisor, " ", "")
	var bits []byte
	for _, c := range b {
		for i := range 8 {
			if reflected {
				bits = append(bits, c>>i&1)
			} else {
				bits = append(bits, c>>(7-i)&1)
			}
		}
	}
	bits = append(bits, make([]byte, 16)...)
	for i := range first {
		bits[i] ^= first[i] - '0'
	}
	for i := range len(bits) - 16 {
		if bits[i] == 1 {
			for j := range poly {
				bits[i+j] ^= poly[j] - '0'
			}
		}
	}
	rest := bits[len(bits)-16:]
	if reflected {
		slices.Reverse(rest)
	}
	var sum uint16
	for _, bit := range rest {
		sum = sum<<1 | uint16(bit)
	}
	return sum
}

func TestChecksumsAgain(t *testing.T) {
	r := chance(t)
	for name, c := range checksums {
		for range 500 {
			b := make([]byte, 1+r.IntN(80))
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			if got, want := c.of(b), dumbChecksum(name, b); got != want {
				t.Fatalf("%s of % x is %04X, want %04X", name, b, got, want)
			}
		}
	}
}
