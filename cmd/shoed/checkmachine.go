package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"shoed/mqtt"
)

// checkClock tells how far the wall clock can be trusted, and what sets it.
func checkClock(_ context.Context, p *inspected) []mqtt.Finding { return p.clock(clockState()) }

func (p *inspected) clock(state string) []mqtt.Finding {
	const name = "clock"
	source := p.process(func(words []string) bool {
		return slices.Contains([]string{"systemd-timesyncd", "chronyd", "ntpd", "ptp4l"}, filepath.Base(words[0]))
	})
	battery := "and a battery clock is there"
	if rtcs, _ := filepath.Glob(p.under("sys/class/rtc/rtc*")); len(rtcs) == 0 {
		battery = "and without a battery clock it starts wrong when power and network are away"
	}
	set := "nothing seen here sets it: sudo timedatectl set-ntp true, or install chrony"
	if source != "" {
		set = source + " is to set it, and has not: is its server reached? See timedatectl timesync-status, or chronyc tracking"
	}
	switch {
	case state == "synced" && source != "":
		return passed(name, "synced, set by %s, %s", source, battery)
	case state == "synced":
		return passed(name, "synced, by what cannot be seen here, %s", battery)
	case state == "unset":
		return failed(name, fmt.Errorf("it stands in the past, and all times with it; %s", set))
	}
	return warned(name, "not known to be right; %s; %s", set, battery)
}

// mount is where a file system hangs in the tree, as the kernel lists it.
type mount struct {
	at, kind, source string
	device           string // MAJOR:MINOR
	readOnly         bool
}

// mountOf is the file system of a folder. A line of proc_pid_mountinfo(5):
//
//	36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
func (p *inspected) mountOf(dir string) (of mount, ok bool) {
	f, err := os.Open(p.under("proc/self/mountinfo"))
	if err != nil {
		return of, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		left, right, _ := strings.Cut(lines.Text(), " - ")
		w, fs := strings.Fields(left), strings.Fields(right)
		if len(w) < 6 || len(fs) < 3 {
			continue
		}
		at := strings.ReplaceAll(w[4], `\040`, " ")
		within, err := filepath.Rel(at, dir)
		if err != nil || !filepath.IsLocal(within) || len(at) < len(of.at) {
			continue
		}
		options := strings.Split(w[5]+","+fs[2], ",")
		of, ok = mount{at: at, kind: fs[0], source: fs[1], device: w[2], readOnly: slices.Contains(options, "ro")}, true
	}
	return of, ok
}

// File systems on which a journal does not last.
var (
	remote   = []string{"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs", "fuse.sshfs", "fuse.glusterfs"}
	volatile = []string{"tmpfs", "ramfs"}
)

// checkDisk looks at where the journal is kept.
func checkDisk(_ context.Context, p *inspected) []mqtt.Finding {
	const name = "disk"
	dir := p.existing(p.cfg.Journal.Dir)
	found := p.disk(dir)
	if err := syscall.Access(p.under(dir), 0b011); err != nil { // write and search
		made := "sudo install -d -m 750 -o shoed -g shoed " + p.cfg.Journal.Dir
		found = append(found, failed(name, fmt.Errorf("this user may not write to %s: %w; as shoed's user it must: %s", dir, err, made))...)
	}
	free := machine(p.under(dir), p.under("sys")).DataFreeBytes
	if free == nil {
		return append(found, warned(name, "how much room %s has cannot be seen", dir)...)
	}
	return append(found, p.room(dir, *free)...)
}

// existing is the folder, or the one that it is to be made in, links resolved.
func (p *inspected) existing(dir string) string {
	for {
		real, err := filepath.EvalSymlinks(p.under(dir))
		if err == nil && p.root == "/" {
			return real
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == "/" {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// disk says what the folder is on.
func (p *inspected) disk(dir string) []mqtt.Finding {
	const name = "disk"
	m, ok := p.mountOf(dir)
	on := fmt.Sprintf("%s is on %s (%s)", dir, m.source, m.kind)
	switch {
	case !ok:
		return warned(name, "what %s is on cannot be seen", dir)
	case m.readOnly:
		return failed(name, fmt.Errorf("%s, mounted read-only: give journal.dir where one can write, or sudo mount -o remount,rw %s; if it was writable before, the disk fails: see dmesg", on, m.at))
	case slices.Contains(volatile, m.kind):
		return failed(name, fmt.Errorf("%s, in memory: the journal is gone with the power; give journal.dir on a disk", on))
	case slices.Contains(remote, m.kind):
		return failed(name, fmt.Errorf("%s, over a network, where locks and syncs do not hold; give journal.dir on a disk of this machine", on))
	case m.kind == "overlay":
		return warned(name, "%s, of which it cannot be seen whether it outlives a restart; give journal.dir a file system of its own", on)
	}
	return p.medium(m, on)
}

// medium says what carries the file system.
func (p *inspected) medium(m mount, on string) []mqtt.Finding {
	const name = "disk"
	block, err := filepath.EvalSymlinks(p.under("sys/dev/block/" + m.device))
	if err != nil {
		return passed(name, "%s, on which medium cannot be seen", on)
	}
	if _, err := os.Stat(filepath.Join(block, "partition")); err == nil {
		block = filepath.Dir(block)
	}
	switch {
	case firstLine(filepath.Join(block, "device/type")) == "SD":
		return warned(name, "%s, an SD card: they wear out and few keep their word when the power fails; take an industrial one, or an SSD", on)
	case firstLine(filepath.Join(block, "queue/rotational")) == "1":
		return passed(name, "%s, a turning disk, or one that says so: a card may wait some 10 ms for it", on)
	}
	return passed(name, "%s, flash or SSD", on)
}

// leastRoom is what a table needs for a day, amply.
const leastRoom = 100 << 20

// room holds what is free against what the journal may yet take.
func (p *inspected) room(dir string, free int64) []mqtt.Finding {
	const name, mega = "disk", 1 << 20
	most := p.cfg.Journal.MaxBytes
	files, _ := filepath.Glob(p.under(filepath.Join(p.cfg.Journal.Dir, journalFile+"*")))
	for _, file := range files {
		if st, err := os.Stat(file); err == nil {
			most -= st.Size()
		}
	}
	switch {
	case free < leastRoom:
		return failed(name, fmt.Errorf("%d MB are free in %s: the table holds when none is; make room", free/mega, dir))
	case free < most:
		return warned(name, "%d MB are free in %s, but the journal may take %d MB more: make room, or lower journal.max_bytes", free/mega, dir, most/mega)
	}
	return passed(name, "%d MB are free in %s, the journal may take %d MB more", free/mega, dir, max(most, 0)/mega)
}

// checkSupply says what a Raspberry Pi does of its supply.
func checkSupply(_ context.Context, p *inspected) []mqtt.Finding {
	const name, stronger = "supply", "take its maker's own supply and a short cable"
	m := machine(p.root, p.under("sys"))
	var before *bool // since the start of the machine
	files, _ := filepath.Glob(p.under("sys/devices/platform/*/soc:firmware/get_throttled"))
	for _, file := range files {
		before = anyOf(file, 16, 1<<16)
	}
	yes := func(b *bool) bool { return b != nil && *b }
	switch {
	case yes(m.Undervoltage):
		return failed(name, errors.New("the voltage is too low: "+stronger))
	case yes(before):
		return warned(name, "the voltage was too low since the machine started: %s", stronger)
	case yes(m.Throttled):
		return warned(name, "the processor is slowed down, for it is too hot: give it air")
	case m.Undervoltage != nil || before != nil:
		return passed(name, "the voltage is right")
	}
	model, _ := os.ReadFile(p.under("proc/device-tree/model"))
	if strings.HasPrefix(string(model), "Raspberry Pi") {
		return warned(name, "this kernel does not tell the voltage of its Raspberry Pi: vcgencmd get_throttled does")
	}
	return passed(name, "this machine does not tell its voltage")
}
