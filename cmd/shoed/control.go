package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"shoed/round"
)

// The control socket takes one request a connection: an answer as JSON on one
// line, as in round's text but without at and by, and gives one reply.

const (
	controlTimeout = 5 * time.Second // for a client that does not finish, and for the core while its disk is full
	maxRequest     = 8 << 10         // bytes, as for commands over MQTT
)

type controlReply struct {
	Error  string   `json:"error,omitempty"`
	Events []string `json:"events,omitempty"` // the public events that followed
}

// openControl listens on a socket that only its owner may use. A socket left
// by a killed process is replaced; one that answers is somebody else's.
func openControl(path string) (net.Listener, error) {
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		c.Close()
		return nil, fmt.Errorf("control socket %s: another shoed answers there; stop it or set [control] socket", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	old := syscall.Umask(0o177) // the socket must never be open to others, not even at first
	l, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return l, nil
}

// serveControl hands answers to the core until the listener is closed.
func serveControl(ctx context.Context, l net.Listener, answers chan<- request) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() { // ends with its deadlines at the latest
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(controlTimeout))
			reply := controlReply{}
			events, err := control(ctx, conn, answers)
			if reply.Events = events; err != nil {
				reply.Error = err.Error()
			}
			conn.SetDeadline(time.Now().Add(controlTimeout))
			json.NewEncoder(conn).Encode(reply) // a client that is gone has no use for it
		}()
	}
}

func control(ctx context.Context, conn net.Conn, answers chan<- request) ([]string, error) {
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxRequest)
	if !lines.Scan() {
		return nil, errors.New("no request")
	}
	in, err := parseAnswer(lines.Bytes(), peerName(conn))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	done := make(chan result, 1)
	select {
	case answers <- request{in, done}:
	case <-ctx.Done():
		return nil, errors.New("busy: the table holds, its journal cannot be written")
	}
	select {
	case r := <-done:
		return r.events, r.err
	case <-ctx.Done():
		return nil, errors.New("busy: the answer was taken, but the journal cannot be written yet")
	}
}

// parseAnswer reads a request as an answer input of somebody by name.
func parseAnswer(line []byte, by string) (round.Input, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return round.Input{}, err
	}
	if fields == nil { // JSON's null
		return round.Input{}, errors.New("null is no answer")
	}
	fields["in"] = json.RawMessage(`"answer"`)
	fields["at"] = json.RawMessage(`"2000-01-01T00:00:00Z"`) // the core stamps it
	fields["by"] = json.RawMessage(strconv.Quote(by))
	whole, err := json.Marshal(fields)
	if err != nil {
		return round.Input{}, err
	}
	return round.ParseInput(whole)
}

// peerName is who is at the other end of the socket, as the kernel says.
func peerName(conn net.Conn) string {
	name := "local"
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return name
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return name
	}
	raw.Control(func(fd uintptr) {
		cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		if err != nil {
			return
		}
		id := strconv.Itoa(int(cred.Uid))
		name = "local:" + id
		if u, err := user.LookupId(id); err == nil {
			name = "local:" + u.Username
		}
	})
	return name
}
