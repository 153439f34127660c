package mqtt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func (g *guarded) account(name string) Account {
	return Account{Server: "mqtt://" + g.addr, User: name, Password: passwordOf(name)}
}

// A supervisor and surveillance may subscribe all that is public, a board not;
// a wrong password is told without being shown.
func TestSubscribeWithAccount(t *testing.T) {
	guardedBrokers(t, func(t *testing.T, g *guarded) {
		d := newTable(t, 1)
		d.deal(3)
		publish(t, d, g.own, func(o *Options) { o.User, o.Password = desk, g.tablePassword })
		for _, u := range people {
			got := make(chan string, 100)
			_, err := Subscribe(t.Context(), g.account(u.Name), site, desk, func(topic string, _ bool, _ []byte) { got <- topic })
			if u.Role == Board && g.embedded {
				if err == nil || !strings.Contains(err.Error(), `alerts is refused (code 0x80): give user "board-1" the right`) {
					t.Errorf("board: %v", err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%v: %v", u, err)
			}
			until(t, "the state", func() bool { return <-got == Topic(site, desk, "state") })
		}
		wrong := g.account("anna")
		wrong.Password = "falsch"
		if _, err := Subscribe(t.Context(), wrong, site, desk, nil); err == nil || !strings.Contains(err.Error(), `refuses user "anna": check name and password`) || strings.Contains(err.Error(), "falsch") {
			t.Errorf("wrong password: %v", err)
		}
	})
}

// A command reaches the table from its sender's topic, and the sender hears the
// replies to it and no others; who may not send it is told what to look at.
func TestAsk(t *testing.T) {
	guardedBrokers(t, func(t *testing.T, g *guarded) {
		d := newTable(t, 1)
		var p *running
		ready := make(chan bool)
		p = publish(t, d, g.own, func(o *Options) {
			o.User, o.Password = desk, g.tablePassword
			o.Command = func(user, name string, _ bool, body []byte) {
				<-ready
				c, err := parseCommand(body)
				if err != nil {
					t.Errorf("%s: %v", body, err)
				}
				p.Reply(user, name, 0, Reply{CmdID: "01JD0000000000000000000000", Status: Rejected, Code: CodeBusy})
				p.Reply(user, name, 0, Reply{CmdID: c.CmdID, Status: Accepted, Code: CodeOK, Message: user})
				p.Reply(user, name, 0, Reply{CmdID: c.CmdID, Status: Done, Code: CodeOK, Message: user})
			}
		})
		close(ready)
		until(t, "the table", func() bool { return p.log.count("code=broker_connected") == 1 })
		ask := func(ctx context.Context, user, name string) (got []string, err error) {
			err = Ask(ctx, g.account(user), question(t, name), func(a Answer) bool {
				got = append(got, fmt.Sprint(a.Rsp.Status, a.Rsp.Message))
				return a.Rsp.Status == Accepted
			})
			return got, err
		}
		for user, name := range map[string]string{"anna": "void", "board-1": "sync", "cctv": "sync"} {
			if got, err := ask(t.Context(), user, name); err != nil || fmt.Sprint(got) != fmt.Sprintf("[accepted%s done%s]", user, user) {
				t.Errorf("%s %s: %v, %v", user, name, got, err)
			}
		}
		// A broker may hang up on who may not write, or say nothing.
		patient := func() context.Context {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(2*time.Second, func() { cancel(errors.New("no reply so far")) })
			return ctx
		}
		got, err := ask(patient(), "board-1", "void")
		if want := "check that board-1 may write " + Topic(site, desk, "cmd/board-1/void"); !says(err, want) || len(got) > 0 {
			t.Errorf("a board voids: %v, %v", got, err)
		}
		p.stop(nil)
		p.end()
		got, err = ask(patient(), "anna", "void")
		if want := "no reply so far: table table-1 is stopped; check that anna may write " + Topic(site, desk, "cmd/anna/void"); !says(err, want) || len(got) > 0 {
			t.Errorf("of a table that is not there: %v, %v", got, err)
		}
	})
}

// says tells whether an error holds every one of some texts.
func says(err error, texts string) bool {
	return err != nil && !slices.ContainsFunc(strings.Split(texts, "|"), func(text string) bool { return !strings.Contains(err.Error(), text) })
}

func question(t testing.TB, name string) Question {
	t.Helper()
	c, err := NewCommand(time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return Question{Site: site, Table: desk, Name: name, Command: c}
}

// What no table could understand is not sent: it would have no reply.
func TestAskWrong(t *testing.T) {
	for want, change := range map[string]func(*Question, *Account){
		`user "Anna"`:           func(_ *Question, a *Account) { a.User = "Anna" },
		`user ""`:               func(_ *Question, a *Account) { a.User = "" },
		`site "a/b"`:            func(q *Question, _ *Account) { q.Site = "a/b" },
		`table ""`:              func(q *Question, _ *Account) { q.Table = "" },
		`"+" is no command`:     func(q *Question, _ *Account) { q.Name = "+" },
		"want a ULID":           func(q *Question, _ *Account) { q.Command.CmdID = "1" },
		"ttl_ms 0":              func(q *Question, _ *Account) { q.Command.TTLMS = 0 },
		"reason of 600 bytes":   func(q *Question, _ *Account) { q.Command.Reason = strings.Repeat("x", 600) },
		"has at most 8192":      func(q *Question, _ *Account) { q.Command.Args = []byte(`{"x":"` + strings.Repeat("x", 9000) + `"}`) },
		"write it as mqtt://ho": func(_ *Question, a *Account) { a.Server = "broker" },
		"certificates to trust": func(_ *Question, a *Account) { a.TLS.CAFile = "/none" },
		"connection refused":    func(*Question, *Account) {},
	} {
		q, a := question(t, "void"), Account{Server: "mqtt://" + freePort(t), User: "anna"}
		change(&q, &a)
		if err := Ask(t.Context(), a, q, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
