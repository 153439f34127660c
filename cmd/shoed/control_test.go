package main

import (
	"fmt"
	"net"
	"os"
	"os/user"
	"strings"
	"testing"

	"shoed/round"
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
	for body, want := range map[string]string{
		"":                                  "unexpected end of JSON input",
		"{}":                                "answer without what to do",
		`{"do":"fly"}`:                      "none of resume",
		`{"do":"ack","in":"card"}`:          "no standing alert", // it is an answer whatever it says
		`{"do":"ack","suit":"h"}`:           "unknown for input",
		`null`:                              "null is no answer",
		`[]`:                                "cannot unmarshal",
		`{"do":"correct","cards":{"P7":1}}`: "none of P1",
		`{"do":"` + strings.Repeat("x", maxRequest) + `"}`: "no request",
	} {
		if reply := sendRequest(t, tb, body); !strings.Contains(reply, want) {
			t.Errorf("%.60q: reply %s, want one with %q", body, reply, want)
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if reply := sendRequest(t, tb, `{"do":"ack","by":"the manager"}`); !strings.Contains(reply, "local:"+me.Username) {
		t.Errorf("reply %s does not name %s", reply, me.Username)
	}
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

// TestAnswerWords: what is typed at the table is the answer that is sent.
func TestAnswerWords(t *testing.T) {
	for words, want := range map[string]round.Answer{
		"confirm":                          {Do: round.DoConfirm},
		"void alert=A000012":               {Do: round.DoVoid, Alert: 12},
		"reveal_order order=banker_first":  {Do: round.DoRevealOrder, Order: round.RevealBankerFirst},
		"hold_card where=burn":             {Do: round.DoHoldCard, Where: round.WhereBurn},
		"hold_card exposed=true where=use": {Do: round.DoHoldCard, Where: round.WhereUse, Exposed: true},
		"correct round=12 P2=8s as_dealt=true": {Do: round.DoCorrect, Round: 12, AsDealt: true,
			Cards: [7]round.Card{round.P2: round.NewCard(8, round.Spade)}},
	} {
		do, rest, _ := strings.Cut(words, " ")
		body, err := answerBody(do, strings.Fields(rest))
		if err != nil {
			t.Errorf("%s: %v", words, err)
			continue
		}
		in, err := parseAnswer(body, "")
		if err != nil || in.Answer != want {
			t.Errorf("%s: %+v, %v; want %+v", words, in.Answer, err, want)
		}
	}
	for _, words := range []string{"fly", "correct P9=8s", "correct P2", "correct as_dealt=perhaps", "void alert=12x"} {
		do, rest, _ := strings.Cut(words, " ")
		if body, err := answerBody(do, strings.Fields(rest)); err == nil {
			t.Errorf("%s was taken: %s", words, body)
		}
	}
}
