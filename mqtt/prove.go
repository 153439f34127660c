package mqtt

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Result is what came of a check.
type Result string

const (
	Pass Result = "pass" // it was seen to work
	Warn Result = "warn" // it was not tried, or works less well than it could
	Fail Result = "fail" // it does not work
)

// Finding is what one check found.
type Finding struct {
	Result Result `json:"result"`
	Check  string `json:"check"` // its name
	Text   string `json:"text"`  // what was found and, unless it passed, what to do
}

// ProveOptions say whose rights are to be proven.
type ProveOptions struct {
	Account             // the table's own
	Observer    Account // of somebody who may read the table's topics; optional: without a user those are not tried
	Role        Role    // the observer's, which says what he may read; optional
	Site, Table string
	Audit       bool          // the table publishes audit
	Running     bool          // the table may be at work: nothing is sent that could be taken for it
	Wait        time.Duration // for a message to come back; optional: 3 s
}

// prover is Prove under way.
type prover struct {
	ProveOptions
	own, observer *ear // observer is nil without one
	found         []Finding
	broken        bool // the broker is away, so silence proves nothing
}

// Prove finds out by round trips whether the table's user may do at a broker
// what a table does there: with 3.1.1 a broker may grant or acknowledge what it
// then refuses. It takes a client id of its own and disturbs no table: besides
// the loopback, which every table ignores, it sends only when the table is not
// online there, and then nothing retained, and what is retained already or has
// the schema check/1.0 and seq 0.
func Prove(ctx context.Context, o ProveOptions) []Finding {
	o.Wait = cmp.Or(o.Wait, 3*time.Second)
	p := &prover{ProveOptions: o}
	if p.open(ctx) {
		p.proveLoopback(ctx)
		p.proveStatus(ctx)
	}
	p.own.close()
	p.observer.close()
	return p.found
}

func (p *prover) say(r Result, check, format string, args ...any) {
	p.found = append(p.found, Finding{r, check, fmt.Sprintf(format, args...)})
}

// lacks says that the table's user has no right, and which lines give it. Of
// several any one may be the missing one.
func (p *prover) lacks(check string, rights ...string) {
	if p.broken {
		return
	}
	var may, add []string
	for _, right := range rights {
		kind, name, _ := strings.Cut(right, " ")
		topic := Topic(p.Site, p.Table, name)
		may, add = append(may, kind+" "+topic), append(add, "topic "+kind+" "+topic)
	}
	p.say(Fail, check, "user %s may not %s: add to its rights at the broker: %s", p.User, strings.Join(may, ", or not "), strings.Join(add, "; "))
}

// open connects and subscribes. False: nothing else can be tried.
func (p *prover) open(ctx context.Context) bool {
	var err error
	if p.own, err = listenTo(ctx, p.Account); err != nil {
		p.say(Fail, "connection", "%v", err)
		return false
	}
	p.say(Pass, "connection", "connected as %s", cmp.Or(p.User, "nobody in particular"))
	for _, name := range strings.Fields(rights[itself].read) {
		if err := p.own.subscribe(ctx, Topic(p.Site, p.Table, name)); err != nil {
			p.say(Fail, "subscription", "%v", err)
		}
	}
	if p.Observer.User == "" {
		return true
	}
	if p.observer, err = listenTo(ctx, p.Observer); err != nil {
		p.say(Fail, "observer", "%v", err)
		return true
	}
	for _, name := range append([]string{"status", "cmd/+/+"}, p.outgoing()...) {
		p.observer.subscribe(ctx, Topic(p.Site, p.Table, name)) // what is refused is not heard, which is told
	}
	return true
}

// outgoing are the topics that an observer sees.
func (p *prover) outgoing() []string {
	var names []string
	for _, name := range strings.Fields(rights[itself].write) {
		switch name = strings.NewReplacer("rsp/+/+", "rsp/"+p.Observer.User+"/check", "replay/+", "replay/"+p.Observer.User).Replace(name); {
		case name == "status", name == "audit" && !p.Audit, strings.HasPrefix(name, "cmd/"):
		default:
			names = append(names, name)
		}
	}
	return names
}

// proveLoopback lets a command of the table to itself go round.
func (p *prover) proveLoopback(ctx context.Context) {
	const check = "commands"
	name := "cmd/" + p.Table + "/" + loopback
	sent, lost := p.try(ctx, name, []byte(`{"check":"`+rand.Text()+`"}`), p.own)
	switch {
	case p.own.heard(sent):
		p.say(Pass, check, "the table's own loopback came back: %s may read cmd/+/+ and write %s", p.User, name)
	case p.own.refused(Topic(p.Site, p.Table, "cmd/+/+")): // told
	case p.observer.heard(sent):
		p.lacks(check, "read cmd/+/+")
	case lost || p.observer != nil:
		p.lacks(check, "write "+name)
	default:
		p.lacks(check, "write "+name, "read cmd/+/+")
	}
}

// proveStatus finds out whether the table is there; if not, its other rights are
// tried.
func (p *prover) proveStatus(ctx context.Context) {
	const check = "status"
	topic := Topic(p.Site, p.Table, "status")
	was, kept, seen := p.status()
	if p.atWork() {
		if seen {
			p.say(Pass, check, "the table is %s at this broker, and its status is kept and read", was.State)
		} else {
			p.lacks(check, "read status")
		}
		p.say(Warn, "topics", "the table is %s at this broker, so its other topics were not tried: stop it and check again", was.State)
		return
	}
	if p.Running {
		p.say(Warn, check, "shoed runs on this machine but is not seen to be online at this broker: if it uses this one, %s may not write or not read %s; stop it and check again", p.User, topic)
		return
	}
	if kept == nil {
		kept = p.offline()
	}
	sent, lost := p.try(ctx, "status", kept, p.own)
	switch {
	case p.own.heard(sent):
		p.say(Pass, check, "%s may write and read status", p.User)
	case p.own.refused(topic): // told
	case p.observer.heard(sent):
		p.lacks(check, "read status")
	case lost || seen || p.observer != nil:
		p.lacks(check, "write status")
	default:
		p.lacks(check, "write status", "read status")
	}
	p.proveTopics(ctx, was.Epoch)
}

// status is the table's latest at this broker, and whether its own user has seen
// it; the body is nil without one.
func (p *prover) status() (s Status, body []byte, own bool) {
	topic := Topic(p.Site, p.Table, "status")
	body, own = p.own.latest(topic)
	if !own {
		body, _ = p.observer.latest(topic)
	}
	if json.Unmarshal(body, &s) != nil { // nobody's
		return Status{}, nil, false
	}
	return s, body, own
}

func (p *prover) atWork() bool {
	s, body, _ := p.status()
	return body != nil && s.State != Offline && s.State != Stopped
}

// offline is the table's status as its will would have it.
func (p *prover) offline() []byte {
	body, _ := json.Marshal(Status{Envelope: p.envelope("status", ""), State: Offline, Instance: "check-" + rand.Text(), Reason: "shoed check"}) // strings and numbers
	return body
}

func (p *prover) envelope(kind, epoch string) Envelope {
	return Envelope{Schema: kind + "/1.0", Site: p.Site, Table: p.Table, Epoch: epoch, TS: stamp(time.Now()), Clock: "unset"}
}

// proveTopics tries what only an observer can see.
func (p *prover) proveTopics(ctx context.Context, epoch string) {
	const check = "topics"
	if p.observer == nil {
		p.say(Warn, check, "not tried whether %s may write its other topics: nobody looks; name somebody who may read them", p.User)
		return
	}
	var seen []string
	for _, name := range p.outgoing() {
		if p.atWork() {
			p.say(Warn, check, "the table has come online meanwhile, so not all its topics were tried")
			break
		}
		topic := Topic(p.Site, p.Table, name)
		right := strings.NewReplacer("rsp/"+p.Observer.User+"/check", "rsp/+/+", "replay/"+p.Observer.User, "replay/+").Replace(name)
		if p.observer.refused(topic) || p.Role != 0 && !(User{p.Observer.User, p.Role}).at(p.Site, p.Table).mayRead(topic) {
			p.say(Warn, check, "not tried whether %s may write %s: %s may not read it", p.User, right, p.Observer.User)
			continue
		}
		body, there := p.observer.latest(topic)
		if !there {
			env := p.envelope("check", epoch)
			env.Delayed = true
			body, _ = json.Marshal(env) // strings and numbers
		}
		sent, lost := p.try(ctx, name, body, p.observer)
		switch {
		case p.observer.heard(sent):
			seen = append(seen, right)
		default:
			p.lacks(check, "write "+right)
			if !lost && p.Role == 0 && !p.broken {
				p.found[len(p.found)-1].Text += "; or " + p.Observer.User + " may not read it"
			}
		}
	}
	if len(seen) > 0 {
		p.say(Pass, check, "%s may write %s: %s has seen it", p.User, strings.Join(seen, " "), p.Observer.User)
	}
}

// try sends a message and waits until the ear hears it, or does not in time.
// lost says that the broker hung up on it.
func (p *prover) try(ctx context.Context, name string, body []byte, by *ear) (sent heard, lost bool) {
	sent = heard{topic: Topic(p.Site, p.Table, name), body: string(body)}
	if p.own.gone() {
		if err := p.reopen(ctx); err != nil {
			p.say(Fail, "connection", "%v", err)
			p.broken = true
		}
	}
	if p.broken {
		return sent, false
	}
	if err := p.own.publish(ctx, sent.topic, false, body); err == nil {
		by.wait(ctx, p.Wait, sent, p.own)
	} else if !p.own.gone() {
		p.say(Fail, "connection", "%v", err)
		p.broken = true
	}
	return sent, p.own.gone() && !by.heard(sent)
}

// reopen replaces a connection on which the broker hung up.
func (p *prover) reopen(ctx context.Context) error {
	next, err := listenTo(ctx, p.Account)
	if err != nil {
		return err
	}
	p.own.close()
	p.own = next
	for _, name := range strings.Fields(rights[itself].read) {
		next.subscribe(ctx, Topic(p.Site, p.Table, name)) // what is wrong with it was told the first time
	}
	return nil
}

// ear is a connection that remembers what came. All but open may be called of a
// nil one, which hears nothing.
type ear struct {
	*visit
	denied []string // topics

	mu   sync.Mutex
	got  []heard
	more chan struct{}
}

// heard is a message that came.
type heard struct {
	topic, body string
	kept        bool // it was retained
}

func listenTo(ctx context.Context, a Account) (*ear, error) {
	v, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &ear{visit: v, more: make(chan struct{}, 1)}, nil
}

func (e *ear) subscribe(ctx context.Context, topic string) error {
	err := e.visit.subscribe(ctx, map[string]byte{topic: 1}, func(topic string, retained bool, payload []byte) {
		e.mu.Lock()
		e.got = append(e.got, heard{topic, string(payload), retained})
		e.mu.Unlock()
		select {
		case e.more <- struct{}{}:
		default:
		}
	})
	if err != nil {
		e.denied = append(e.denied, topic)
	}
	return err
}

func (e *ear) refused(topic string) bool { return e != nil && slices.Contains(e.denied, topic) }

// heard reports whether a message came, live.
func (e *ear) heard(m heard) bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.got, m)
}

// latest is what came last on a topic.
func (e *ear) latest(topic string) (body []byte, there bool) {
	if e == nil {
		return nil, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range slices.Backward(e.got) {
		if m.topic == topic {
			return []byte(m.body), true
		}
	}
	return nil, false
}

// wait returns when a message has come, or its sender's connection is lost, or
// after some time.
func (e *ear) wait(ctx context.Context, most time.Duration, m heard, sender *ear) {
	late := time.After(most)
	for !e.heard(m) {
		select {
		case <-e.more:
		case err := <-sender.lost:
			sender.lost <- err
			return
		case <-late:
			return
		case <-ctx.Done():
			return
		}
	}
}

// gone reports whether the connection is lost.
func (e *ear) gone() bool {
	select {
	case err := <-e.lost:
		e.lost <- err
		return true
	default:
		return false
	}
}

func (e *ear) close() {
	if e != nil {
		e.leave()
	}
}
