package journal

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// runChild runs a child that checks for itself, in its own mount namespace; without root also in its own user
// namespace, where it may mount.
func runChild(t *testing.T, name, path string) {
	t.Helper()
	c := child(name, path)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if uid := os.Getuid(); uid != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%s", out)
}

func TestDiskFull(t *testing.T) { runChild(t, "full", journalPath(t)) }

// fillDisk fills a tiny disk, makes room and goes on.
func fillDisk(path string) error {
	dir := filepath.Dir(path)
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		return err
	}
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 800<<10), 0o600); err != nil {
		return err
	}
	j, _, err := Open(path, Options{})
	if err != nil {
		return err
	}
	var acknowledged []Record
	add := func(n int) error {
		b := batch(j, n)
		if err := j.Append(b); err != nil {
			return err
		}
		acknowledged = append(acknowledged, b...)
		return nil
	}
	refused := 0
	for ; refused < 40; err = add(1 + refused%9) {
		if err == nil {
			continue
		}
		if !errors.Is(err, ErrFull) {
			return fmt.Errorf("after %d records: %w", len(acknowledged), err)
		}
		if refused++; refused%10 == 1 {
			if err := sameRecords(j, acknowledged); err != nil {
				return err
			}
		}
	}
	fmt.Printf("full after %d records: %v\n", len(acknowledged), err)
	if _, err := j.Count("session"); !errors.Is(err, ErrFull) {
		return fmt.Errorf("count on a full disk: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		return err
	}
	for range 20 {
		if err := add(3); err != nil {
			return fmt.Errorf("with room again: %w", err)
		}
	}
	if n, err := j.Count("session"); err != nil || n != 1 {
		return fmt.Errorf("count with room again: %d %w", n, err)
	}
	return finish(j, path, acknowledged)
}

// finish closes the journal and checks that it holds just these records.
func finish(j *Journal, path string, want []Record) error {
	if err := sameRecords(j, want); err != nil {
		return err
	}
	if err := j.Close(); err != nil {
		return err
	}
	if r, err := Verify(path); err != nil || !r.OK() {
		return fmt.Errorf("verify: %v %w", r.Findings, err)
	}
	j, o, err := Open(path, Options{})
	if err != nil {
		return err
	}
	if !o.Clean || o.TornBytes != 0 {
		return fmt.Errorf("opened: %+v", o)
	}
	return errors.Join(sameRecords(j, want), j.Close())
}

func sameRecords(j *Journal, want []Record) error {
	if no, _ := j.end(); no != uint64(len(want)) {
		return fmt.Errorf("the head is %d, acknowledged were %d", no, len(want))
	}
	i := 0
	err := j.Read(0, func(r Record) error {
		if i >= len(want) || !same(r, want[i]) {
			return fmt.Errorf("record %d is %+v", i+1, r)
		}
		i++
		return nil
	})
	if err == nil && i != len(want) {
		err = fmt.Errorf("%d records instead of %d", i, len(want))
	}
	return err
}

// A write that fails otherwise than for lack of room: the kernel refuses to let the log grow.
func TestWriteFails(t *testing.T) { runChild(t, "limit", journalPath(t)) }

func exceedLimit(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	j, _, err := Open(path, Options{})
	if err != nil {
		return err
	}
	var want []Record
	for len(want) < 100 { // until the log is larger than its index, which must still fit
		b := batch(j, 5)
		if err := j.Append(b); err != nil {
			return err
		}
		want = append(want, b...)
	}
	st, err := os.Stat(path + "-wal")
	if err != nil {
		return err
	}
	for round := range 3 {
		if err := limitFiles(uint64(st.Size())); err != nil {
			return err
		}
		big := batch(j, 200)
		for i := range big { // more than the space left in the log by its starting over
			big[i].Body = append(big[i].Body, make([]byte, 2000)...)
		}
		err := j.Append(big)
		if !errors.Is(err, ErrIO) || errors.Is(err, ErrFull) {
			return fmt.Errorf("round %d: append over the limit: %v", round, err)
		}
		if err := sameRecords(j, want); err != nil {
			return err
		}
		if err := limitFiles(1 << 40); err != nil {
			return err
		}
		b := batch(j, 5)
		if err := j.Append(b); err != nil {
			return fmt.Errorf("round %d: after the limit: %w", round, err)
		}
		want = append(want, b...)
	}
	return finish(j, path, want)
}

func limitFiles(n uint64) error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
		return err
	}
	l.Cur = min(n, l.Max)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l)
}

// A sync that fails once: the kernel then forgets what it had not written, and a second sync would lie.
func TestSyncFails(t *testing.T) { runChild(t, "sync", journalPath(t)) }

// failSync makes every sync of the log's descriptor fail, for good, and leaves lower numbers free so that the log
// gets another one when it is opened again.
func failSync(path string) error {
	runtime.LockOSThread() // the filter is this thread's
	var spare []*os.File
	for range 16 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		spare = append(spare, f)
	}
	j, _, err := Open(path, Options{})
	if err != nil {
		return err
	}
	want := batch(j, 30)
	if err := j.Append(want); err != nil {
		return err
	}
	fd, err := descriptor(path + "-wal")
	if err != nil {
		return err
	}
	for _, f := range spare {
		f.Close()
	}
	if err := refuseSync(fd); err != nil {
		return err
	}
	for range 5 {
		b := batch(j, 4)
		if err := j.Append(b); err != nil {
			return err // written, then synced by the reopening: a success
		}
		want = append(want, b...)
	}
	again, err := descriptor(path + "-wal")
	if err != nil || again == fd {
		return fmt.Errorf("the log was not opened again: descriptor %d, then %d: %w", fd, again, err)
	}
	return finish(j, path, want)
}

// descriptor finds the number under which this process has the file open.
func descriptor(path string) (int, error) {
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return 0, err
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == path {
			return strconv.Atoi(filepath.Base(link))
		}
	}
	return 0, fmt.Errorf("%s is not open: %s", path, strings.Join(links, " "))
}

// refuseSync lets fsync and fdatasync of the descriptor fail with EIO in this thread, by a seccomp filter.
func refuseSync(fd int) error {
	const (
		load, equal, give = 0x20, 0x15, 0x06 // BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
		allow, fail       = 0x7fff0000, 0x00050000 | uint32(syscall.EIO)
		number, argument  = 0, 16 // offsets in struct seccomp_data, little-endian
	)
	filter := []syscall.SockFilter{
		{Code: load, K: number},
		{Code: equal, K: syscall.SYS_FSYNC, Jt: 1},
		{Code: equal, K: syscall.SYS_FDATASYNC, Jf: 3},
		{Code: load, K: argument},
		{Code: equal, K: uint32(fd), Jf: 1},
		{Code: give, K: fail},
		{Code: give, K: allow},
	}
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	const setNoNewPrivileges, setSeccomp, modeFilter = 38, 22, 2
	if _, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, setNoNewPrivileges, 1, 0, 0, 0, 0); e != 0 {
		return e
	}
	if _, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, setSeccomp, modeFilter, uintptr(unsafe.Pointer(&program)), 0, 0, 0); e != 0 {
		return e
	}
	return nil
}
