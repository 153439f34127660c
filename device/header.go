package device

import (
	"strconv"
	"strings"

	"periph.io/x/conn/v3/pin"
	"periph.io/x/host/v3/rpi"
)

// header is the 40-pin header of a Raspberry Pi (A+, B+, 2 and later) by
// position, from periph's tables. They are there without host.Init, which would
// open every chip and read every line; it alone adapts them to the first boards,
// of 26 pins, where positions 3, 5 and 13 of 2012 are other lines.
var header = [...]pin.Pin{
	1: rpi.P1_1, rpi.P1_2, rpi.P1_3, rpi.P1_4, rpi.P1_5, rpi.P1_6, rpi.P1_7, rpi.P1_8, rpi.P1_9, rpi.P1_10,
	rpi.P1_11, rpi.P1_12, rpi.P1_13, rpi.P1_14, rpi.P1_15, rpi.P1_16, rpi.P1_17, rpi.P1_18, rpi.P1_19, rpi.P1_20,
	rpi.P1_21, rpi.P1_22, rpi.P1_23, rpi.P1_24, rpi.P1_25, rpi.P1_26, rpi.P1_27, rpi.P1_28, rpi.P1_29, rpi.P1_30,
	rpi.P1_31, rpi.P1_32, rpi.P1_33, rpi.P1_34, rpi.P1_35, rpi.P1_36, rpi.P1_37, rpi.P1_38, rpi.P1_39, rpi.P1_40,
}

// onHeader is what is at a position such as P1_11: GPIO17. Its number is below 0
// where no GPIO is.
func onHeader(position string) (pin.Pin, bool) {
	digits, ok := strings.CutPrefix(position, "P1_")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 || n >= len(header) {
		return nil, false
	}
	return header[n], true
}

// isRaspberry tells the chip behind the header of a Raspberry Pi: its offsets are
// the numbers of Broadcom, whatever the device tree calls the lines (GPIO9 is
// SPI_MISO in many).
func (c *chip) isRaspberry() bool {
	return strings.HasPrefix(c.label(), "pinctrl-bcm2") || strings.HasPrefix(c.label(), "pinctrl-rp1")
}
