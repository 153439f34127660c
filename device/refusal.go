package device

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.bug.st/serial"
	"golang.org/x/sys/unix"
)

// refuse turns a failure to open the port into an error that an operator can
// act on, wrapping one of the Err values.
func refuse(o Options, c claimed, err error) error {
	kind, hint := ErrNotSerial, err.Error()
	var pe *serial.PortError
	switch {
	case errors.Is(err, fs.ErrNotExist), is(err, unix.ENOTDIR, unix.ENXIO, unix.ENODEV, unix.EIO):
		kind, hint = ErrAbsent, absentHint(o.root)
	case errors.Is(err, fs.ErrPermission):
		kind, hint = ErrPermission, permissionHint(o.Address, c, err)
	case is(err, unix.EBUSY, unix.EWOULDBLOCK), errors.As(err, &pe) && pe.Code() == serial.PortBusy:
		kind, hint = ErrTaken, takenHint(c)
	case is(err, unix.ENOTTY):
		hint = "it is no terminal device; give the path of a serial port"
	}
	name := o.Address
	if c.path != "" && c.path != name {
		name += " (" + c.path + ")"
	}
	return fmt.Errorf("%s: %s: %w: %s", o.Name, name, kind, hint)
}

func is(err error, any ...unix.Errno) bool {
	for _, e := range any {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// absentHint lists the ports that are there.
func absentHint(root string) string {
	found := scan(root)
	if len(found) == 0 {
		return "and no other serial adapter is there; plug it in"
	}
	return "plug it in, or configure one that is there: " + addresses(found)
}

// permissionHint says why the port at path may not be opened, and what to do.
func permissionHint(path string, c claimed, err error) string {
	if c.stat.Mode == 0 { // a folder on the way is closed to us
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			path = pathErr.Path
		}
		return fmt.Sprintf("%s may not be looked into; allow this user to search the folders on the way", path)
	}
	return forbidden(c.stat)
}

// forbidden says who may open the port, who we are, and what to do.
func forbidden(st unix.Stat_t) string {
	group := groupName(st.Gid)
	mine, names := ourGroups()
	text := fmt.Sprintf("it belongs to %s:%s with mode %04o, we are %s in groups %s; ", userName(st.Uid), group,
		st.Mode&0o7777, userName(uint32(os.Geteuid())), strings.Join(names, ","))
	switch {
	case st.Mode&0o060 != 0o060:
		return text + "not even its group may read and write it: let a udev rule set its mode to 0660"
	case os.Geteuid() == 0 || slices.Contains(mine, int(st.Gid)):
		return text + "that should do, so something else forbids it: DeviceAllow= of the unit, a container or an access list"
	}
	return text + fmt.Sprintf("run \"sudo usermod -aG %s %s\" and start again", group, userName(uint32(os.Geteuid())))
}

// ourGroups lists the groups of this process, by number and by name.
func ourGroups() (ids []int, names []string) {
	ids, _ = os.Getgroups() // cannot fail for our own process
	if !slices.Contains(ids, os.Getegid()) {
		ids = append(ids, os.Getegid())
	}
	for _, id := range ids {
		names = append(names, groupName(uint32(id)))
	}
	return ids, names
}

func userName(id uint32) string {
	text := strconv.FormatUint(uint64(id), 10)
	if u, err := user.LookupId(text); err == nil {
		return u.Username
	}
	return text
}

func groupName(id uint32) string {
	text := strconv.FormatUint(uint64(id), 10)
	if g, err := user.LookupGroupId(text); err == nil {
		return g.Name
	}
	return text
}

func takenHint(c claimed) string {
	who := lockHolder(c.stat)
	if who == "" {
		who = strings.Join(holders(c.path), " and ")
	}
	if who == "" {
		return "another process has it open; find it with: sudo fuser -v " + c.path
	}
	return who + " has it open; stop it (a getty or ModemManager must be disabled for this port)"
}

// lockHolder names the process that holds the flock of the file, or is empty.
// It reads the kernel's list, which also names processes of other users:
//
//	1: FLOCK  ADVISORY  WRITE 6892 00:1a:3 0 EOF
func lockHolder(st unix.Stat_t) string {
	f, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer f.Close()
	id := fmt.Sprintf("%02x:%02x:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)), st.Ino)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		w := strings.Fields(lines.Text())
		if len(w) >= 6 && w[1] == "FLOCK" && w[5] == id {
			return processName(w[4])
		}
	}
	return ""
}

// holders names the other processes that have the device at path open, as far
// as we may see: root sees all, others only their own processes.
func holders(path string) []string {
	processes, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
	var found []string
	for _, p := range processes {
		pid := filepath.Base(p)
		if pid == strconv.Itoa(os.Getpid()) {
			continue
		}
		fds, _ := os.ReadDir(p + "/fd") // not ours to see, or gone
		for _, fd := range fds {
			if target, err := os.Readlink(p + "/fd/" + fd.Name()); err == nil && target == path {
				found = append(found, processName(pid))
				break
			}
		}
	}
	return found
}

func processName(pid string) string {
	if pid == strconv.Itoa(os.Getpid()) {
		return "this process"
	}
	name, err := os.ReadFile("/proc/" + pid + "/comm")
	if err != nil {
		return "process " + pid
	}
	return fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), pid)
}
