package main

import (
	"bufio"
	"bytes"
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

	"shoed/mqtt"
)

// The control socket takes one command a connection, as JSON on one line, and
// gives one reply. Who may use the socket answers for the user that he names.

const (
	controlTimeout = 5 * time.Second // for a client that does not finish, and for the core while its disk is full
	maxRequest     = 16 << 10        // bytes: a command and its envelope
)

// controlRequest is a command given at the table itself.
type controlRequest struct {
	User    string          `json:"user,omitempty"` // one of the configured; "" the owner of the socket
	Command string          `json:"command"`
	Body    json.RawMessage `json:"body"` // cmd/1.0
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

// serveControl takes requests until the listener is closed.
func (s *service) serveControl(ctx context.Context, l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() { // ends with its deadlines at the latest
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(controlTimeout))
			reply, then := s.control(ctx, conn)
			conn.SetDeadline(time.Now().Add(controlTimeout))
			json.NewEncoder(conn).Encode(reply) // a client that is gone has no use for it
			if then != nil {
				then(ctx)
			}
		}()
	}
}

// control takes one request. What it returns last, if anything, is to be done
// after the reply.
func (s *service) control(ctx context.Context, conn net.Conn) (*mqtt.Reply, func(context.Context)) {
	bad := func(why string) (*mqtt.Reply, func(context.Context)) {
		return mqtt.Refuse(mqtt.CodeBadRequest, "%s", why), nil
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxRequest)
	if !lines.Scan() {
		return bad("no request")
	}
	var asked controlRequest
	d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
	d.DisallowUnknownFields()
	if err := d.Decode(&asked); err != nil {
		return bad(err.Error())
	}
	if asked.Command == restartName {
		return s.restart(asked.Body, peerName(conn))
	}
	return s.command(ctx, conn, asked), nil
}

// command has the core take a command.
func (s *service) command(ctx context.Context, conn net.Conn, asked controlRequest) *mqtt.Reply {
	arrived, refused := s.gate.ArriveLocal(asked.User, asked.Command, asked.Body, time.Now())
	if refused != nil {
		return refused
	}
	by := asked.User
	if by == "" {
		by = peerName(conn)
	}
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	done := make(chan *mqtt.Reply, 2) // a second one comes when another person approves
	select {
	case s.commands <- request{arrived, by, func(_ uint64, r *mqtt.Reply) { done <- r }}:
	case <-ctx.Done():
		return mqtt.Refuse(mqtt.CodeBusy, "the table holds, its journal cannot be written")
	}
	select {
	case r := <-done:
		return r
	case <-ctx.Done():
		return &mqtt.Reply{CmdID: arrived.Command.CmdID, Status: mqtt.Accepted, Code: mqtt.CodeBusy,
			Message: "it was taken, but the journal cannot be written yet"}
	}
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
