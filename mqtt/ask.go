package mqtt

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
)

// Question is a command to a table. Who gives it is the Account's user.
type Question struct {
	Site, Table string
	Name        string // of the command
	Command     Command
	Key         ed25519.PrivateKey // signs it; optional
}

// Answer is what a table says to a command: a reply, or events that a sync
// asked for.
type Answer struct {
	Rsp    *Rsp
	Replay *ReplayBatch
	Raw    []byte // the message as it came
}

// answersAhead may wait for a slow reader: more than a sync ever gives.
const answersAhead = MaxReplay + 100

// Ask gives a command and then hands each answer to got, until that wants no
// more. The error says why no more came: ctx has ended, the broker was lost, or
// the question cannot be asked.
func Ask(ctx context.Context, a Account, q Question, got func(Answer) (more bool)) error {
	body, err := q.body(a.User)
	if err != nil {
		return err
	}
	v, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer v.leave()
	answers := make(chan Answer, answersAhead)
	var life atomic.Value
	life.Store("not known at this broker, or not to " + a.User)
	err = v.subscribe(ctx, map[string]byte{q.reply(a.User): 1, q.topic("replay/" + a.User): 1, q.topic("status"): 1}, func(topic string, _ bool, payload []byte) {
		var s Status
		switch {
		case topic != q.topic("status"):
			q.hear(topic, payload, answers)
		case json.Unmarshal(payload, &s) == nil:
			life.Store(string(s.State))
		}
	})
	if err != nil {
		return err
	}
	rights := fmt.Sprintf("check that %s may write %s and read %s", a.User, q.command(a.User), q.reply(a.User))
	if err := v.publish(ctx, q.command(a.User), false, body); err != nil {
		return fmt.Errorf("%w; %s", err, rights) // some brokers hang up on who may not write
	}
	for {
		select {
		case answer := <-answers:
			if !got(answer) {
				return nil
			}
		case err := <-v.lost:
			return fmt.Errorf("%w; %s", v.wrong(fmt.Errorf("connection lost: %w", err)), rights)
		case <-ctx.Done():
			return fmt.Errorf("%w: table %s is %s; %s", context.Cause(ctx), q.Table, life.Load(), rights)
		}
	}
}

func (q *Question) topic(name string) string { return Topic(q.Site, q.Table, name) }

func (q *Question) command(user string) string { return q.topic("cmd/" + user + "/" + q.Name) }

func (q *Question) reply(user string) string { return q.topic("rsp/" + user + "/" + q.Name) }

// body is the message, if a table could understand it.
func (q *Question) body(user string) ([]byte, error) {
	for what, name := range map[string]string{"site": q.Site, "table": q.Table, "user": user} {
		if !validName.MatchString(name) {
			return nil, fmt.Errorf("%s %q: want a-z, 0-9 and -, at most 32, the first no -", what, name)
		}
	}
	if q.Name == "" || strings.ContainsAny(q.Name, "/+#\x00") {
		return nil, fmt.Errorf("%q is no command; there are %s", q.Name, strings.Join(CommandNames(), ", "))
	}
	if err := q.Command.check(); err != nil {
		return nil, err
	}
	body, err := json.Marshal(q.Command)
	if q.Key != nil {
		body, err = q.Command.Sign(q.Key, q.command(user))
	}
	if err == nil && len(body) > maxCommand {
		err = fmt.Errorf("%d bytes: a command has at most %d", len(body), maxCommand)
	}
	return body, err
}

// hear takes what answers this question and no other.
func (q *Question) hear(topic string, payload []byte, answers chan<- Answer) {
	answer, id := Answer{Raw: payload}, ""
	var err error
	if strings.HasPrefix(topic, q.topic("replay/")) {
		answer.Replay = &ReplayBatch{}
		err = json.Unmarshal(payload, answer.Replay)
		id = answer.Replay.CmdID
	} else {
		answer.Rsp = &Rsp{}
		err = json.Unmarshal(payload, answer.Rsp)
		id = answer.Rsp.CmdID
	}
	if err != nil || id != q.Command.CmdID {
		return
	}
	select {
	case answers <- answer:
	default: // no table says so much
	}
}
