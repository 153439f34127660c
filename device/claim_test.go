package device

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// refused opens path and wants an error of that kind holding all the texts.
func refused(t *testing.T, path string, kind error, texts ...string) {
	t.Helper()
	s, err := Open(wait(t), Options{Name: "reader", Address: path})
	if err == nil {
		s.Close()
		t.Fatalf("%s was opened", path)
	}
	if !errors.Is(err, kind) {
		t.Errorf("%v: not %v", err, kind)
	}
	for _, text := range append(texts, "reader: "+path) {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v: does not say %q", err, text)
		}
	}
}

func TestAbsent(t *testing.T) {
	dir := t.TempDir()
	refused(t, filepath.Join(dir, "usb-FTDI-if00"), ErrAbsent, "plug it in")
	refused(t, filepath.Join(dir, "none", "usb-FTDI-if00"), ErrAbsent)

	far, near := terminal(t)
	byID := filepath.Join(dir, "usb-FTDI-if00")
	link(t, near, byID)
	far.Close() // the link dangles now
	refused(t, byID, ErrAbsent)
}

func TestAbsentNamesWhatIsThere(t *testing.T) {
	if hint := absentHint(t.TempDir()); hint != "and no other serial adapter is there; plug it in" {
		t.Error(hint)
	}
	const want = "plug it in, or configure one that is there: " +
		"/dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A50285BI-if00-port0 (/dev/ttyUSB0), /dev/serial0 (/dev/ttyAMA0), /dev/ttyS0"
	if hint := absentHint(machine(t, "1-1.2", "1-1.3", "1-1.4", "1-1.5", "1-1.6", "1-1.7")); hint != want {
		t.Errorf("got  %s\nwant %s", hint, want)
	}
}

func TestNotSerial(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Dir(file), "/dev/null"} {
		refused(t, path, ErrNotSerial, "no terminal device")
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "kept" {
		t.Errorf("the file is now %q, %v", text, err)
	}
}

// A pseudo-terminal accepts 7E1 and keeps 8N, as some drivers do.
func TestSettingsThatTheDriverDidNotTake(t *testing.T) {
	_, path := terminal(t)
	_, err := Open(wait(t), Options{Name: "reader", Address: path, DataBits: 7, Parity: "even"})
	if !errors.Is(err, ErrNotSerial) || !strings.Contains(err.Error(), "does not do 4800 baud, 7 data bits, parity even, 1 stop bits") {
		t.Fatal(err)
	}
	open(t, path) // nothing was left open
}

func TestTaken(t *testing.T) {
	t.Run("by this process", func(t *testing.T) {
		_, path := terminal(t)
		open(t, path)
		refused(t, path, ErrTaken, "this process has it open")
	})
	t.Run("by another process, through another link", func(t *testing.T) {
		far, path := terminal(t)
		byID := filepath.Join(t.TempDir(), "usb-FTDI-if00")
		link(t, path, byID)
		line, cmd, stop := other(t, "open", byID, nil)
		if line != "opened" {
			t.Fatal(line)
		}
		refused(t, path, ErrTaken, "(process "+strconv.Itoa(cmd.Process.Pid)+") has it open")
		stop()
		s := open(t, path)
		write(t, far, "all of it")
		if c, err := s.Read(wait(t)); err != nil || string(c.Bytes) != "all of it" {
			t.Errorf("read %q, %v", c.Bytes, err)
		}
	})
	t.Run("by one who set TIOCEXCL only", func(t *testing.T) {
		_, path := terminal(t)
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := unix.IoctlSetInt(int(f.Fd()), unix.TIOCEXCL, 0); err != nil {
			t.Fatal(err)
		}
		refused(t, path, ErrTaken)
	})
	t.Run("no more, its holder was killed", func(t *testing.T) {
		_, path := terminal(t)
		line, cmd, stop := other(t, "open", path, nil)
		if line != "opened" {
			t.Fatal(line)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		stop()
		open(t, path)
	})
}

func TestHoldersAreNamed(t *testing.T) {
	_, path := terminal(t)
	if found := holders(path); len(found) != 0 {
		t.Fatalf("held by %v", found)
	}
	line, cmd, _ := other(t, "hold", path, nil)
	if line != "held <nil>" {
		t.Fatal(line)
	}
	found := holders(path)
	if len(found) != 1 || !strings.HasSuffix(found[0], "(process "+strconv.Itoa(cmd.Process.Pid)+")") {
		t.Errorf("held by %v, want process %d", found, cmd.Process.Pid)
	}
}

// The child is nobody when we are root; otherwise we, without permission.
func TestPermission(t *testing.T) {
	asNobody := func(cmd *exec.Cmd) {
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
	}
	want := func(path string, texts ...string) {
		t.Helper()
		line, _, _ := other(t, "open", path, asNobody)
		for _, text := range append(texts, "reader: "+path, ErrPermission.Error()) {
			if !strings.Contains(line, text) {
				t.Errorf("%q: does not say %q", line, text)
			}
		}
	}
	_, path := terminal(t)
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	want(path, "it belongs to "+userName(uint32(os.Geteuid())), "with mode 0000", "let a udev rule set its mode to 0660")

	dir := t.TempDir()
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	want(filepath.Join(dir, "ttyUSB0"), dir, "may not be looked into")

	if os.Geteuid() == 0 {
		const dialout = 20
		if err := errors.Join(os.Chown(path, 0, dialout), os.Chmod(path, 0o660)); err != nil {
			t.Fatal(err)
		}
		group, me := groupName(dialout), userName(65534)
		want(path, "it belongs to root:"+group+" with mode 0660, we are "+me, `run "sudo usermod -aG `+group+" "+me+`"`)
	}
}

// The library opens without O_CLOEXEC; a child started at that very moment
// would keep the port from being closed.
func TestChildrenDoNotInheritThePort(t *testing.T) {
	_, path := terminal(t)
	inherited := func() (terminals, pipes int) {
		// ls rather than this binary: it starts faster, so it hits more moments.
		out, err := exec.Command("ls", "-l", "/proc/self/fd").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.Count(string(out), path), strings.Count(string(out), "pipe:")
	}
	_, usual := inherited() // the pipes of the child's output and what the test was started with
	check := func() {
		t.Helper()
		if terminals, pipes := inherited(); terminals != 0 || pipes != usual {
			t.Errorf("a child has the port %d times, and %d pipes more than usual", terminals, pipes-usual)
		}
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			s, err := Open(context.Background(), Options{Name: "reader", Address: path})
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 100 {
		check()
	}
	close(stop)
	<-done
	open(t, path)
	check()
}
