package device

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// patience is how long a test waits for something that must happen.
const patience = 10 * time.Second

// TestMain also plays the other process in tests that need one, and at the end
// proves that no goroutine and no descriptor of ours is left.
func TestMain(m *testing.M) {
	if role := os.Getenv("DEVICE_TEST_ROLE"); role != "" {
		os.Exit(child(role, os.Getenv("DEVICE_TEST_PATH")))
	}
	code := m.Run()
	if left := leftovers(); code == 0 && left != "" {
		fmt.Println("left behind by the tests:", left)
		code = 1
	}
	os.Exit(code)
}

func child(role, path string) int {
	switch role {
	case "open": // say how opening went, keep the port until stdin ends
		s, err := Open(context.Background(), Options{Name: "reader", Address: path})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("opened")
		io.Copy(io.Discard, os.Stdin)
		s.Close()
	case "vanish":
		fmt.Println(vanish())
	case "ports": // list those of the machine at path
		json.NewEncoder(os.Stdout).Encode(Ports(path))
	case "hold": // open it as any program would
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		fmt.Println("held", err)
		io.Copy(io.Discard, os.Stdin)
		f.Close()
	}
	return 0
}

// leftovers waits for goroutines and terminals of the package to be gone.
func leftovers() string {
	var left string
	end := time.Now().Add(patience)
	for left = "?"; left != "" && time.Now().Before(end); runtime.Gosched() {
		left = ""
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		for _, stack := range strings.Split(string(stacks), "\n\n") {
			for _, ours := range []string{"device.(*serialLine)", "device.(*wireLine)", "device.(*follower)", "device.(*Queue)"} {
				if strings.Contains(stack, ours) {
					left += stack + "\n"
				}
			}
		}
		fds, _ := filepath.Glob("/proc/self/fd/*")
		for _, fd := range fds {
			if target, err := os.Readlink(fd); err == nil && strings.HasPrefix(target, "/dev/p") {
				left += target + "\n"
			}
		}
	}
	return left
}

// terminal makes a pseudo-terminal; path is its near end, which nobody has open.
func terminal(t *testing.T) (far *os.File, path string) {
	t.Helper()
	far, near, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	if err := near.Close(); err != nil {
		t.Fatal(err)
	}
	return far, near.Name()
}

// open opens the port and closes it at the end of the test.
func open(t *testing.T, path string) *serialLine {
	t.Helper()
	return openLine(t, path).(*serialLine)
}

func openLine(t *testing.T, address string) Line {
	t.Helper()
	l, err := Open(wait(t), Options{Name: "reader", Address: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// wait is a context that ends when patience does.
func wait(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// other starts this test binary as another process in the given role and
// returns its first line of output. stop ends it.
func other(t *testing.T, role, path string, change func(*exec.Cmd)) (line string, cmd *exec.Cmd, stop func()) {
	t.Helper()
	cmd = exec.Command("/proc/self/exe") // reachable for other users too
	cmd.Env = append(os.Environ(), "DEVICE_TEST_ROLE="+role, "DEVICE_TEST_PATH="+path)
	cmd.Stderr = os.Stderr
	if change != nil {
		change(cmd)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			in.Close()
			cmd.Wait() // the role's own exit code is not the matter
		}
	}
	t.Cleanup(stop)
	return strings.TrimSpace(line), cmd, stop
}

// write sends text from the far end.
func write(t *testing.T, far *os.File, text string) {
	t.Helper()
	if _, err := far.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// link makes name point to target, as udev does for an adapter.
func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}
