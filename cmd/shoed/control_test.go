package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"regexp"
	"strings"
	"testing"
)

// TestControlSocket: only its owner may use it, who answers is told by the
// kernel, bad requests are refused, and a socket left by a killed shoed is no
// hindrance.
func TestControlSocket(t *testing.T) {
	tb := newTable(t, "")
	tb.plug()
	tb.running()
	info, err := os.Stat(tb.socket())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket %v, %v; want mode 0600", info.Mode(), err)
	}
	const id = "01JD0000000000000000000000"
	cmd := func(name, more string) string {
		return `{"command":"` + name + `","body":{"schema":"cmd/1.0","cmd_id":"` + id + `","issued_at":"2026-01-01T00:00:00Z","ttl_ms":1` + more + `}}`
	}
	for body, want := range map[string]string{
		"":                                  "unexpected EOF|EOF",
		"{}":                                "bad_request",
		`null`:                              "bad_request",
		`[]`:                                "cannot unmarshal",
		`{"do":"ack"}`:                      "unknown field",
		cmd("fly", ""):                      "no such command",
		cmd("ack", `,"x":1`):                "unknown field",
		cmd("ack", `,"args":{"in":"card"}`): "unknown for ack",
		cmd("ack", `,"args":{"suit":"h"}`):  "is unknown",
		cmd("correct", `,"args":{"cards":{"P7":"8s"}}`):         "none of P1",
		cmd("void", `,"args":{"alert":"table-9-A000001"}`):      "not of this table",
		`{"user":"anna",` + cmd("ack", "")[1:]:                  "no user of this table",
		`{"command":"` + strings.Repeat("x", maxRequest) + `"}`: "no request",
	} {
		reply := sendRequest(t, tb, body)
		if !regexp.MustCompile(want).MatchString(reply) || !strings.Contains(reply, "rejected") {
			t.Errorf("%.60q: reply %s, want one with %q", body, reply, want)
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if err := tb.answer("pause"); err != nil {
		t.Error(err)
	}
	if err := tb.answer("resume"); err != nil {
		t.Error(err)
	}
	eventually(t, "the event names its author", func() bool {
		var out bytes.Buffer
		err := run(context.Background(), []string{"journal", "export", tb.file()}, nil, &out, io.Discard)
		return err == nil && strings.Contains(out.String(), `"do":"pause","by":"local:`+me.Username+`"`)
	})
	tb.kill()
	tb.running()
	if err := tb.answer("ack"); err == nil || !strings.Contains(err.Error(), "no standing alert") {
		t.Errorf("after a kill: %v", err)
	}
	other := newTable(t, "")
	replaceIn(t, other.config, other.socket(), tb.socket())
	other.start()
	if err := <-other.exited; err == nil || !strings.Contains(other.log.String(), "another shoed answers there") {
		t.Errorf("a second shoed on the socket: %v\n%s", err, other.log)
	}
	other.cmd = nil
}

func sendRequest(t *testing.T, tb *table, body string) string {
	t.Helper()
	conn, err := net.Dial("unix", tb.socket())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s\n", body) // an oversized one may be cut off, which the reply says
	conn.(*net.UnixConn).CloseWrite()
	b := make([]byte, 64<<10)
	n, _ := conn.Read(b)
	return string(b[:n])
}

// TestCommandWords: what is typed at the table is the command that is sent.
func TestCommandWords(t *testing.T) {
	for words, want := range map[string]string{
		"":                                     `{}`,
		"alert=A000012":                        `{"alert":"A000012"}`,
		"exposed=true where=use":               `{"exposed":true,"where":"use"}`,
		"round=12 P2=8s B3=9d as_dealt=true":   `{"as_dealt":true,"cards":{"B3":"9d","P2":"8s"},"round":12}`,
		`bets={"tie":{"min":1,"max":2}} min=5`: `{"bets":{"tie":{"min":1,"max":2}},"min":5}`,
	} {
		got, err := commandOf(strings.Fields(words))
		if err != nil || string(got.Args) != want {
			t.Errorf("%s: %s, %v; want %s", words, got.Args, err, want)
		}
	}
	for _, words := range []string{"correct", "P2", "P2="} {
		if got, err := commandOf([]string{words}); err == nil {
			t.Errorf("%s was taken: %s", words, got.Args)
		}
	}
}
