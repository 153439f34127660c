package mqtt

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"shoed/round"
)

const (
	maxCommand = 8 << 10          // bytes (contract.md, the table of topics)
	maxDepth   = 4                // of objects and lists: args.cards is at 3
	maxFields  = 32               // of an object: none has as many
	maxTTL     = 30 * time.Second // contract.md, Commands
	maxReason  = 512              // bytes
	maxText    = 512              // bytes of a reply's message, which may quote the command
)

// Command is the body cmd/1.0, sent to cmd/{user}/{command}. Unknown fields are
// refused.
type Command struct {
	Schema   string          `json:"schema"`    // cmd/1.0
	CmdID    string          `json:"cmd_id"`    // the caller's ULID; the same again has no second effect
	IssuedAt string          `json:"issued_at"` // RFC 3339
	TTLMS    int64           `json:"ttl_ms"`    // 1 to 30000
	Expect   *Expect         `json:"expect,omitempty"`
	Args     json.RawMessage `json:"args,omitempty"` // an object
	Reason   string          `json:"reason,omitempty"`
	Sig      string          `json:"sig,omitempty"` // base64, see Sign
}

// Expect is what must hold for a command to have its effect. What is absent is
// not asked.
type Expect struct {
	Epoch   string `json:"epoch,omitempty"`
	ShoeID  string `json:"shoe_id,omitempty"`
	RoundID string `json:"round_id,omitempty"`
	Rev     *uint8 `json:"rev,omitempty"`
	Alert   string `json:"alert,omitempty"` // it stands
	Phase   Phase  `json:"phase,omitempty"`
}

// need is which role a command asks for (contract.md, Commands).
type need uint8

const (
	needView  need = iota + 1 // everybody's
	needFloor                 // a floor or pit supervisor's
	needPit                   // a pit supervisor's
	needTech                  // a technician's
)

func (n need) String() string { return [...]string{"", "view", "floor", "pit", "tech"}[n] }

// may reports whether a role has what is needed. The table itself, on which
// somebody works as its owner, has everything.
func (r Role) may(n need) bool {
	switch n {
	case needView:
		return true
	case needFloor:
		return r == Floor || r == Pit || r == itself
	case needPit:
		return r == Pit || r == itself
	}
	return r == Tech || r == itself
}

// commands are all there are. One with do is an answer of game.md section 5.
var commands = map[string]struct {
	needs need
	do    round.Do
	args  string // those that it takes, where it is no answer
}{
	"sync": {needs: needView, args: "from_seq round_id"},

	"ack":         {needs: needFloor, do: round.DoAck},
	"resume":      {needs: needFloor, do: round.DoResume},
	"pause":       {needs: needFloor, do: round.DoPause},
	"confirm":     {needs: needFloor, do: round.DoConfirm},
	"arranged":    {needs: needFloor, do: round.DoArranged},
	"hold_card":   {needs: needFloor, do: round.DoHoldCard},
	"free_hand":   {needs: needFloor, do: round.DoHoldCard}, // hold_card with where=free_hand
	"sensors_off": {needs: needFloor, do: round.DoSensorsOff},
	"dealer":      {needs: needFloor, args: "name"},

	"correct":        {needs: needPit, do: round.DoCorrect},
	"void":           {needs: needPit, do: round.DoVoid},
	"void_insurance": {needs: needPit, do: round.DoVoidInsurance},
	"reopen":         {needs: needPit, do: round.DoReopen},
	"new_shoe":       {needs: needPit, do: round.DoNewShoe},
	"manual":         {needs: needPit, do: round.DoManual},
	"reveal_order":   {needs: needPit, do: round.DoRevealOrder},
	"swap_reader":    {needs: needPit, do: round.DoSwapReader},
	"shelve":         {needs: needPit, do: round.DoShelve},
	"unshelve":       {needs: needPit, do: round.DoUnshelve},
	"open_table":     {needs: needPit, do: round.DoOpenTable},
	"close_table":    {needs: needPit, do: round.DoCloseTable},
	"approve":        {needs: needPit, args: "cmd_id"},
	"limits":         {needs: needPit, args: "currency min max differential bets"},

	"identify":            {needs: needTech},
	"diag":                {needs: needTech},
	"config-reload":       {needs: needTech},
	"test":                {needs: needTech, do: round.DoTest},
	"reader-lock":         {needs: needTech, args: "off"},
	"reader-cancel-error": {needs: needTech, args: "error"},
}

// CommandNames lists every command, sorted.
func CommandNames() []string {
	var names []string
	for name := range commands {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// NewCommand is a command of now, with a fresh id. args is marshalled; nil is none.
func NewCommand(now time.Time, args any) (Command, error) {
	c := Command{Schema: "cmd/1.0", CmdID: ulid.Make().String(), IssuedAt: stamp(now), TTLMS: maxTTL.Milliseconds()}
	if args == nil {
		return c, nil
	}
	body, err := json.Marshal(args)
	c.Args = body
	return c, err
}

// Sign gives the body of the command with the signature of its sender. What is
// signed is the topic, a line's end, and the body with an empty sig:
//
//	shoed/v1/house/table-1/cmd/anna/void
//	{"schema":"cmd/1.0",…,"sig":""}
//
// The signature, Ed25519 in base64, then goes between those two quotes, so that
// any language can make it without agreeing on how JSON is written.
func (c Command) Sign(key ed25519.PrivateKey, topic string) ([]byte, error) {
	const mark = "SIGNATURE" // no base64 of 64 bytes
	c.Sig = mark
	body, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	whole := []byte(`"sig":"` + mark + `"`)
	at := bytes.LastIndex(body, whole)
	unsigned := slices.Concat(body[:at], []byte(`"sig":""`), body[at+len(whole):])
	sig := base64.StdEncoding.EncodeToString(ed25519.Sign(key, signed(topic, unsigned)))
	return slices.Concat(body[:at], []byte(`"sig":"`+sig+`"`), body[at+len(whole):]), nil
}

func signed(topic string, unsigned []byte) []byte {
	return slices.Concat([]byte(topic+"\n"), unsigned)
}

// verify checks the signature of a body as it came.
func (c *Command) verify(key ed25519.PublicKey, topic string, body []byte) bool {
	sig, err := base64.StdEncoding.DecodeString(c.Sig)
	quoted := []byte(`"` + c.Sig + `"`)
	if err != nil || len(sig) != ed25519.SignatureSize || bytes.Count(body, quoted) != 1 {
		return false
	}
	return ed25519.Verify(key, signed(topic, bytes.Replace(body, quoted, []byte(`""`), 1)), sig)
}

// parseCommand reads a body. It refuses what is no command, a field that is
// unknown or given twice, and JSON that is nested too deep.
func parseCommand(body []byte) (Command, error) {
	var c Command
	if !utf8.Valid(body) {
		return c, errors.New("not JSON: not UTF-8")
	}
	if err := checkShape(body); err != nil {
		return c, err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Command{}, fmt.Errorf("not a cmd/1.0: %w", err)
	}
	if err := c.check(); err != nil {
		return c, err
	}
	// As we write it, for the journal and for audit, it may be longer: < is \u003c.
	if again, err := json.Marshal(c); err != nil || len(again) > maxCommand {
		return c, fmt.Errorf("more than %d bytes when <, > and & are escaped", maxCommand)
	}
	return c, nil
}

func (c *Command) check() error {
	if id, err := ulid.ParseStrict(c.CmdID); err != nil || id.String() != c.CmdID { // in other case it would be another
		c.CmdID = "" // it is nobody's
		return errors.New("cmd_id: want a ULID")
	}
	args := bytes.TrimSpace(c.Args)
	switch {
	case c.Schema != "cmd/1.0":
		return fmt.Errorf("schema %q: want cmd/1.0", c.Schema)
	case c.TTLMS < 1 || c.TTLMS > maxTTL.Milliseconds():
		return fmt.Errorf("ttl_ms %d: want 1 to %d", c.TTLMS, maxTTL.Milliseconds())
	case len(args) > 0 && args[0] != '{':
		return errors.New("args: want an object")
	case len(c.Reason) > maxReason:
		return fmt.Errorf("reason of %d bytes: want at most %d", len(c.Reason), maxReason)
	}
	if _, err := time.Parse(time.RFC3339, c.IssuedAt); err != nil {
		return fmt.Errorf("issued_at %q: want a time as RFC 3339 has it", c.IssuedAt)
	}
	return nil
}

// checkShape walks through JSON without building anything from it. Go's decoder
// would take a key in other case, or the last of two.
func checkShape(body []byte) error {
	d := json.NewDecoder(bytes.NewReader(body))
	if err := checkValue(d, 0); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

func checkValue(d *json.Decoder, depth int) error {
	token, err := d.Token()
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	open, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	if depth == maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	var keys []string
	for d.More() {
		if open == '{' {
			key, err := d.Token()
			if err != nil {
				return fmt.Errorf("not JSON: %w", err)
			}
			if len(keys) == maxFields {
				return fmt.Errorf("more than %d fields in an object", maxFields)
			}
			name, _ := key.(string)
			if slices.Contains(keys, name) || name != strings.ToLower(name) && depth < 2 {
				return fmt.Errorf("field %q: unknown or given twice", name)
			}
			keys = append(keys, name)
		}
		if err := checkValue(d, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// Outcome is where a command has got to.
type Outcome string

const (
	Accepted Outcome = "accepted" // it will have its effect, or waits for a second person
	Done     Outcome = "done"     // it had its effect
	Rejected Outcome = "rejected" // it had none and will have none
	Failed   Outcome = "failed"   // it could not have its effect
)

// ReplyCode says why.
type ReplyCode string

const (
	CodeOK            ReplyCode = "ok"
	CodeConflict      ReplyCode = "conflict"       // the table is not where the sender thought; result tells where
	CodeExpired       ReplyCode = "expired"        // it came too late
	CodeRetained      ReplyCode = "retained"       // the broker had kept it
	CodeNotAllowed    ReplyCode = "not_allowed"    // not this sender's to give
	CodeBadRequest    ReplyCode = "bad_request"    // it cannot be understood
	CodeNotApplicable ReplyCode = "not_applicable" // it cannot be done now, or at this table
	CodeNeedsSecond   ReplyCode = "needs_second"   // it waits for another person's approve
	CodeDuplicate     ReplyCode = "duplicate"      // counted only: the reply is that of the first time
	CodeBusy          ReplyCode = "busy"           // too many commands
	CodeInternal      ReplyCode = "internal"
)

// Reply is what a command's sender is told.
type Reply struct {
	CmdID     string    `json:"cmd_id"`
	Status    Outcome   `json:"status"`
	Code      ReplyCode `json:"code"`
	Message   string    `json:"message"`
	Duplicate bool      `json:"duplicate,omitempty"` // the command was there before: this is its reply again
	Result    any       `json:"result,omitempty"`
}

// Rsp is the message rsp/1.0, sent to rsp/{user}/{command}. Its seq is that of
// the last event when it was made, those that the command led to included.
type Rsp struct {
	Envelope
	Reply
}

// Given is a command and what became of it, as the journal keeps it and audit
// tells it. The newest of a command has its last reply.
type Given struct {
	User    string  `json:"user"`
	Command string  `json:"command"`
	By      string  `json:"by"`              // who is answerable; two names when another person approved it
	Local   bool    `json:"local,omitempty"` // given at the table itself
	Body    Command `json:"body"`
	Seq     uint64  `json:"seq"` // of the last event that the reply reflects
	Reply   Reply   `json:"reply"`
}

// Refuse is the reply that a command has no effect.
func Refuse(code ReplyCode, format string, args ...any) *Reply {
	why := fmt.Sprintf(format, args...)
	if len(why) > maxText {
		why = strings.ToValidUTF8(why[:maxText], "") + "…"
	}
	return &Reply{Status: Rejected, Code: code, Message: why}
}
