package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"shoed/mqtt"
)

const sysfs = "/sys"

// machine is what this computer says of itself: of the file system that dir is
// on, and of a Raspberry Pi's supply. sys is sysfs, but in tests.
func machine(dir, sys string) mqtt.Machine {
	var m mqtt.Machine
	var disk syscall.Statfs_t
	if syscall.Statfs(dir, &disk) == nil {
		free := int64(disk.Bavail) * int64(disk.Bsize)
		m.DataFreeBytes = &free
	}
	m.Undervoltage = undervoltage(sys)
	// Of its bits, "now": 1 frequency capped, 2 throttled, 3 soft limit of
	// temperature. Only the Pi's own kernels have the file.
	files, _ := filepath.Glob(filepath.Join(sys, "devices/platform/*/soc:firmware/get_throttled"))
	for _, file := range files {
		m.Throttled = anyOf(file, 16, 0b1110)
	}
	return m
}

// undervoltage is whether a Raspberry Pi's supply is too low; nil where nothing
// says so.
func undervoltage(sys string) (low *bool) {
	names, _ := filepath.Glob(filepath.Join(sys, "class/hwmon/*/name"))
	for _, name := range names {
		if firstLine(name) == "rpi_volt" {
			low = anyOf(filepath.Join(filepath.Dir(name), "in0_lcrit_alarm"), 10, 1)
		}
	}
	return low
}

// anyOf says whether the number in the file has any of the bits; nil when there
// is none.
func anyOf(path string, base int, bits uint64) *bool {
	n, err := strconv.ParseUint(firstLine(path), base, 64)
	if err != nil {
		return nil
	}
	set := n&bits != 0
	return &set
}

func firstLine(path string) string {
	text, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}
