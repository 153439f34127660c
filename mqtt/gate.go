package mqtt

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"shoed/round"
)

const (
	commandsPerSecond = 5                // of one user (contract.md, Commands)
	heardPerSecond    = 20               // of one user: what comes faster is not looked at, and not answered
	recordedPerHour   = 600              // of one user: more than people do, and a year of it is less than the journal takes
	clocksApart       = 30 * time.Second // by which a sender's clock may be ahead of ours
	// SecondWithin is how long a command waits for the second person.
	SecondWithin = time.Minute
)

// GateOptions say who may command what.
type GateOptions struct {
	Site, Table, Epoch string
	Users              []User
	Keys               map[string]ed25519.PublicKey // by user
	RequireSignature   bool                         // of every command that comes over the broker
	Dual               []string                     // commands that take two people; a correct only after the outcome
}

// Gate checks commands, in the contract's order: Arrive what needs nothing but
// the command, in any goroutine, so that a flood goes no further; Judge what
// needs the table, in the one that owns it. Between the two a command that was
// there before gets the reply that it got then.
type Gate struct {
	may atomic.Pointer[permissions]

	mu      sync.Mutex
	buckets map[measure]bucket
	counts  map[ReplyCode]uint64
}

// permissions are who may command what, at one time.
type permissions struct {
	GateOptions
	roles map[string]Role
}

// measure is one limit of one user.
type measure struct {
	user string
	limit
}

// limit is how many at once, and how many in the long run.
type limit struct{ most, perSecond float64 }

var (
	hearing    = limit{heardPerSecond, heardPerSecond}
	commanding = limit{commandsPerSecond, commandsPerSecond}
	recording  = limit{recordedPerHour, recordedPerHour / 3600.0}
)

// bucket is what is left of a measure.
type bucket struct {
	left float64
	at   time.Time
}

// NewGate makes one that lets the users of o through.
func NewGate(o GateOptions) *Gate {
	g := &Gate{buckets: map[measure]bucket{}, counts: map[ReplyCode]uint64{}}
	g.Permit(o)
	return g
}

// Permit lets the users of o through from now on, and nobody else. It may be
// called from any goroutine.
func (g *Gate) Permit(o GateOptions) {
	p := &permissions{GateOptions: o, roles: map[string]Role{o.Table: itself}}
	for _, u := range o.Users {
		p.roles[u.Name] = u.Role
	}
	g.may.Store(p)
}

// Request is a command that has passed Arrive.
type Request struct {
	User    string // who gives it
	Name    string // which command
	Command Command
	Local   bool      // given at the table itself, not over a broker
	At      time.Time // when it came, by the wall clock

	answer round.Input
}

// Hears tells whether what came to cmd/{user}/{command} is looked at and
// answered. A flood is not, for it would cost the table more than who sends it;
// nor is what names no possible user or command, for a broker may end the
// connection of who answers to such a topic. Both are counted.
func (g *Gate) Hears(user, name string, now time.Time) bool {
	switch {
	case !validName.MatchString(user) || !validName.MatchString(strings.ReplaceAll(name, "_", "-")):
		g.Count(CodeBadRequest)
	case !g.draw(user, hearing, now):
		g.Count(CodeBusy)
	default:
		return true
	}
	return false
}

// Arrive takes a command as the broker gives it. Without a reply it may go on.
func (g *Gate) Arrive(user, name string, retained bool, body []byte, now time.Time) (Request, *Reply) {
	r, reply := g.arrive(Request{User: user, Name: name, At: now}, retained, body)
	return r, g.settled(&r, reply)
}

// ArriveLocal takes a command that was given at the table itself. Who may use
// the socket vouches for the user that he names; "" is the table's owner.
func (g *Gate) ArriveLocal(user, name string, body []byte, now time.Time) (Request, *Reply) {
	if user == "" {
		user = g.may.Load().Table
	}
	r, reply := g.arrive(Request{User: user, Name: name, Local: true, At: now}, false, body)
	return r, g.settled(&r, reply)
}

func (g *Gate) arrive(r Request, retained bool, body []byte) (Request, *Reply) {
	if retained {
		return r, Refuse(CodeRetained, "a command must not be retained: it could have its effect at any later time")
	}
	if len(body) > maxCommand {
		return r, Refuse(CodeBadRequest, "more than %d bytes", maxCommand)
	}
	var err error
	if r.Command, err = parseCommand(body); err != nil {
		return r, Refuse(CodeBadRequest, "%v", err)
	}
	if !r.Local && !g.draw(r.User, commanding, r.At) {
		return r, Refuse(CodeBusy, "more than %d commands a second", commandsPerSecond)
	}
	if _, reply := g.role(&r); reply != nil {
		return r, reply
	}
	if _, known := commands[r.Name]; !known {
		return r, Refuse(CodeBadRequest, "no such command: %q; there are %s", r.Name, strings.Join(CommandNames(), ", "))
	}
	if reply := g.authentic(&r, body); reply != nil {
		return r, reply
	}
	if err := r.readArgs(g.may.Load().Table); err != nil {
		return r, Refuse(CodeBadRequest, "args: %v", err)
	}
	if !r.Local && g.Records(&r) && !g.draw(r.User, recording, r.At) {
		return r, Refuse(CodeBusy, "more than %d commands an hour", recordedPerHour)
	}
	return r, nil
}

// Records tells whether a command goes into the journal, so that it can have no
// second effect. One that only reads has none, and those who may only read
// cannot fill the journal with what they may not.
func (g *Gate) Records(r *Request) bool {
	return commands[r.Name].needs != needView && g.may.Load().roles[r.User] > Surveillance
}

// role is the sender's; the table's own is of no use over a broker.
func (g *Gate) role(r *Request) (Role, *Reply) {
	role := g.may.Load().roles[r.User]
	if role == 0 || !r.Local && role == itself {
		return 0, Refuse(CodeNotAllowed, "%s is no user of this table", r.User)
	}
	return role, nil
}

// authentic checks the signature: one that is given must be right, and where
// the broker is not trusted one must be given.
func (g *Gate) authentic(r *Request, body []byte) *Reply {
	may := g.may.Load()
	key := may.Keys[r.User]
	switch {
	case r.Command.Sig == "" && (r.Local || !may.RequireSignature):
		return nil
	case r.Command.Sig == "":
		return Refuse(CodeNotAllowed, "a signature is required here")
	case key == nil:
		return Refuse(CodeNotAllowed, "no key is registered for %s", r.User)
	case !r.Command.verify(key, Topic(may.Site, may.Table, "cmd/"+r.User+"/"+r.Name), body):
		return Refuse(CodeNotAllowed, "the signature is wrong")
	}
	return nil
}

// draw takes one from the user's bucket, if there is one. All whom nobody knows
// share a bucket, so that they take no memory.
func (g *Gate) draw(user string, l limit, now time.Time) bool {
	if _, known := g.may.Load().roles[user]; !known {
		user = ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	b, known := g.buckets[measure{user, l}]
	if !known {
		b = bucket{l.most, now}
	}
	b.left = min(b.left+max(now.Sub(b.at).Seconds(), 0)*l.perSecond, l.most)
	b.at = now
	allowed := b.left >= 1
	if allowed {
		b.left--
	}
	g.buckets[measure{user, l}] = b
	return allowed
}

// settled counts a refusal and puts its id in.
func (g *Gate) settled(r *Request, reply *Reply) *Reply {
	if reply != nil {
		reply.CmdID = r.Command.CmdID
		g.Count(reply.Code)
	}
	return reply
}

// Count counts a reply by its code.
func (g *Gate) Count(code ReplyCode) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts[code]++
}

// Counts are the replies since the start, by code.
func (g *Gate) Counts() map[ReplyCode]uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.counts)
}

// Judge checks what needs the table: role, expect, ttl, dual control. now is
// the wall clock, clock how far it can be trusted. Without a reply the command
// may have its effect; one with CodeNeedsSecond waits for it.
func (g *Gate) Judge(r *Request, s *round.State, now time.Time, clock string) *Reply {
	if reply := g.judge(r, s, now, clock); reply != nil {
		reply.CmdID = r.Command.CmdID
		return reply
	}
	return nil
}

func (g *Gate) judge(r *Request, s *round.State, now time.Time, clock string) *Reply {
	if reply := g.Stands(r, s); reply != nil {
		return reply
	}
	if reply := inTime(r, now, clock); reply != nil {
		return reply
	}
	if g.dual(r, s) {
		return &Reply{Status: Accepted, Code: CodeNeedsSecond, Message: "another person must approve this within a minute",
			Result: map[string]string{"cmd_id": r.Command.CmdID, "until": stamp(now.Add(SecondWithin))}}
	}
	return nil
}

// Stands checks that the sender has the role and that the table is where he
// thought, as it must be again when another person approves.
func (g *Gate) Stands(r *Request, s *round.State) *Reply {
	needs := commands[r.Name].needs
	role, reply := g.role(r)
	if reply != nil {
		return reply
	}
	if !role.may(needs) {
		return Refuse(CodeNotAllowed, "%s asks for the role %s, %s has %s", r.Name, needs, r.User, role)
	}
	return g.expected(r, s)
}

// expected checks what the sender thought the table to be; the reply tells
// what it is.
func (g *Gate) expected(r *Request, s *round.State) *Reply {
	e := r.Command.Expect
	if e == nil {
		return nil
	}
	is := g.current(s)
	wrong := ""
	differs := func(field, want, have string) {
		if want != "" && want != have && wrong == "" {
			wrong = field
		}
	}
	differs("epoch", e.Epoch, is.Epoch)
	differs("shoe_id", e.ShoeID, is.ShoeID)
	differs("round_id", e.RoundID, is.RoundID)
	differs("phase", string(e.Phase), string(is.Phase))
	if e.Rev != nil && *e.Rev != *is.Rev && wrong == "" {
		wrong = "rev"
	}
	if e.Alert != "" && !slices.Contains(is.Alerts, e.Alert) && wrong == "" {
		wrong = "alert"
	}
	if wrong == "" {
		return nil
	}
	reply := Refuse(CodeConflict, "%s is not as expected", wrong)
	reply.CmdID, reply.Result = r.Command.CmdID, is
	return reply
}

// Current is where the table is, as a conflict tells it.
type Current struct {
	Epoch   string   `json:"epoch"`
	ShoeID  string   `json:"shoe_id"`
	RoundID string   `json:"round_id"`
	Rev     *uint8   `json:"rev"`
	Phase   Phase    `json:"phase"`
	Alerts  []string `json:"alerts"` // those that stand
}

func (g *Gate) current(s *round.State) Current {
	table := g.may.Load().Table
	is := Current{Epoch: g.may.Load().Epoch, Phase: phaseOf(s), Rev: &s.Round.Rev, Alerts: []string{}}
	if s.Shoe.No != 0 {
		is.ShoeID = ShoeID(table, s.Shoe.No)
	}
	if s.Round.No != 0 {
		is.RoundID = RoundID(table, s.Shoe.No, s.Round.No)
	}
	for i := range s.Alerts {
		if a := &s.Alerts[i]; a.No != 0 && a.Public() {
			is.Alerts = append(is.Alerts, AlertID(table, a.No))
		}
	}
	return is
}

// inTime checks that the command is of now. A clock that is not set proves
// nothing: then what the sender expects of the table must, for an old command
// that comes late expects what is no more.
func inTime(r *Request, now time.Time, clock string) *Reply {
	issued, err := time.Parse(time.RFC3339, r.Command.IssuedAt)
	if err != nil {
		return Refuse(CodeBadRequest, "issued_at: %v", err)
	}
	age := now.Sub(issued)
	switch {
	case r.Local: // the socket keeps nothing
		return nil
	case clock == "unset" && (r.Command.Expect != nil || commands[r.Name].needs == needView):
		return nil
	case clock == "unset":
		return Refuse(CodeExpired, "the table's clock is not set: say in expect where you think the table is")
	case age > time.Duration(r.Command.TTLMS)*time.Millisecond:
		return Refuse(CodeExpired, "issued %v ago, to be done within %v", age.Round(time.Millisecond), time.Duration(r.Command.TTLMS)*time.Millisecond)
	case age < -clocksApart:
		return Refuse(CodeExpired, "issued %v from now: one of the clocks is wrong", (-age).Round(time.Millisecond))
	}
	return nil
}

// dual reports whether the command takes two people; a correction does so once
// the outcome was told.
func (g *Gate) dual(r *Request, s *round.State) bool {
	if !slices.Contains(g.may.Load().Dual, r.Name) {
		return false
	}
	no := r.answer.Answer.Round
	return r.Name != "correct" || no != 0 && no != s.Round.No || s.Round.Decided
}

// Answer is the input that the command is, at a time; false when it is none.
func (r *Request) Answer(at time.Time, by string) (round.Input, bool) {
	in := r.answer
	in.At, in.Answer.By = at, by
	return in, in.Kind == round.InAnswer
}

// readArgs reads the arguments of an answer, and refuses unknown ones of others.
func (r *Request) readArgs(table string) error {
	fields := map[string]json.RawMessage{}
	if len(r.Command.Args) > 0 {
		if err := json.Unmarshal(r.Command.Args, &fields); err != nil {
			return err
		}
	}
	c := commands[r.Name]
	if c.do != 0 {
		return r.readAnswer(fields, c.do, table)
	}
	for name := range fields {
		if !slices.Contains(strings.Fields(c.args), name) {
			return fmt.Errorf("field %q is unknown for %s", name, r.Name)
		}
	}
	return nil
}

// readAnswer lets round read the arguments, as it reads an answer's line. The
// alert that is answered is that of the arguments, or else the one expected.
func (r *Request) readAnswer(fields map[string]json.RawMessage, do round.Do, table string) error {
	for _, name := range []string{"in", "at", "by", "do"} {
		if _, given := fields[name]; given {
			return fmt.Errorf("field %q is unknown for %s", name, r.Name)
		}
	}
	if e := r.Command.Expect; fields["alert"] == nil && e != nil && e.Alert != "" {
		fields["alert"] = json.RawMessage(strconv.Quote(e.Alert))
	}
	if alert := strings.Trim(string(fields["alert"]), `"`); strings.Contains(alert, "-") && !strings.HasPrefix(alert, table+"-") {
		return fmt.Errorf("alert %s is not of this table", alert)
	}
	if r.Name == "free_hand" {
		fields["where"] = json.RawMessage(`"free_hand"`)
	}
	fields["in"] = json.RawMessage(`"answer"`)
	fields["at"] = json.RawMessage(`"2000-01-01T00:00:00Z"`) // stamped when it has its effect
	fields["do"] = json.RawMessage(strconv.Quote(do.String()))
	line, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	r.answer, err = round.ParseInput(line)
	return err
}
