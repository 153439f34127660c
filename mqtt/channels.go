package mqtt

import (
	"embed"
	"slices"
	"strings"
)

// channel is one kind of message and where it goes.
type channel struct {
	name     string // of the payload's schema, and of the first level below the table's root
	rest     string // the levels below it, parameters in braces
	in       bool   // received by the table, not sent
	retained bool
	qos      byte
	payload  any // the zero value of its Go type
	about    string
}

// channels is the contract in one table. The schemas and the AsyncAPI document
// are made of it and of the types: after a change of either,
//
//	go test ./mqtt -run TestSchema -rewrite
var channels = [...]channel{
	{name: "status", retained: true, qos: 1, payload: Status{}, about: "Whether the table's controller is there; also its will."},
	{name: "info", retained: true, qos: 1, payload: Info{}, about: "What this table is: game, rules, reader and software."},
	{name: "roads", retained: true, qos: 1, payload: Roads{}, about: "The decided rounds of the shoe in hand as every board draws them."},
	{name: "insurance", retained: true, qos: 1, payload: Window{}, about: "The insurance window of the round in hand and its offers."},
	{name: "alerts", retained: true, qos: 1, payload: Alerts{}, about: "The alerts that stand and wait for somebody, each with its ready-made answers."},
	{name: "state", retained: true, qos: 1, payload: State{}, about: "The table as it has shown itself; published last, after the events that it reflects."},
	{name: "event", qos: 1, payload: Event{}, about: "Every public event, in order, numbered without a gap."},
	{name: "audit", qos: 1, payload: Audit{}, about: "For surveillance, off by default: every event of the full view and every command, in order."},
	{name: "health", payload: Health{}, about: "Every 20 s: how the controller is, and the seq that a consumer should have."},
	{name: "cmd", rest: "/{user}/{command}", in: true, qos: 1, payload: Command{}, about: "What a person or system asks of the table; at most 8 KB, never retained."},
	{name: "rsp", rest: "/{user}/{command}", qos: 1, payload: Rsp{}, about: "What has become of a command; one or two replies."},
	{name: "replay", rest: "/{user}", qos: 1, payload: ReplayBatch{}, about: "Events again, for who asked with sync; at most 32 KB at once."},
}

// told reports whether the table tells it without being asked, and not to
// surveillance only.
func (c channel) told() bool { return slices.Contains(strings.Fields(unhidden), c.name) }

//go:embed schema/*.json
var schemas embed.FS

// AsyncAPI is the AsyncAPI 3.0 document of all channels.
func AsyncAPI() string {
	text, _ := Schema("asyncapi")
	return text
}

// Schema is the JSON Schema (2020-12) of the payload of that name; false when
// there is none.
func Schema(name string) (string, bool) {
	text, err := schemas.ReadFile("schema/" + name + ".json")
	return string(text), err == nil
}

// SchemaNames lists the payloads that have a schema, in the contract's order.
func SchemaNames() []string {
	names := make([]string, len(channels))
	for i, c := range channels {
		names[i] = c.name
	}
	return names
}
