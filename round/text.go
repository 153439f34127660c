package round

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The texts of game.md section 7, by number. An empty text is no value.
var (
	kindText       = []string{"", "shoe", "card", "show", "unread", "cut", "reader", "placed", "lifted", "reveal", "bets", "insurance", "button", "verdict", "fault", "lock", "setting", "link", "answer", "tick", "restart", "inactive", "wire"}
	toText         = []string{"", "player", "banker", "first", "burn"}
	sideText       = []string{"", "player", "banker"}
	outcomeText    = []string{"", "player", "banker", "tie"}
	boxText        = []string{"", "P1", "P2", "P3", "B1", "B2", "B3"}
	outsideText    = []string{"", "lock", "error", "setting", "overdraw"}
	readerText     = []string{"", "start", "standby", "gap"}
	buttonText     = []string{"", "start", "end", "call", "shoe"}
	spareText      = []string{"", "card", "other", "up", "down"}
	wireText       = []string{"", "stuck", "bouncing", "ok"}
	insuranceText  = []string{"", "open", "close", "post"}
	doText         = []string{"", "resume", "ack", "confirm", "correct", "void", "arranged", "hold_card", "void_insurance", "reopen", "new_shoe", "manual", "sensors_off", "reveal_order", "pause", "shelve", "unshelve", "open_table", "close_table", "test", "swap_reader"}
	whereText      = []string{"", "next_round", "burn", "free_hand", "use"}
	inputFieldsFor = [...]string{
		InShoe:      "decks",
		InCard:      "card to pos again outside",
		InShow:      "to pos card over",
		InUnread:    "why",
		InCut:       "",
		InReader:    "what",
		InPlaced:    "box card foreign",
		InLifted:    "box card",
		InReveal:    "box hand",
		InBets:      "open closes_at",
		InInsurance: "do side wins_on pays spot",
		InButton:    "name",
		InVerdict:   "outcome pairs quit",
		InFault:     "code on",
		InLock:      "on",
		InSetting:   "on address value",
		InLink:      "device up",
		InAnswer:    "do by cards where exposed round alert as_dealt order for_ms off device new",
		InTick:      "",
		InRestart:   "",
		InInactive:  "device what",
		InWire:      "device line what",
	}
)

func (k Kind) String() string       { return kindText[k] }
func (s Side) String() string       { return sideText[s] }
func (o Outcome) String() string    { return outcomeText[o] }
func (b Box) String() string        { return boxText[b] }
func (t To) String() string         { return toText[t] }
func (o Outside) String() string    { return outsideText[o] }
func (r ReaderSays) String() string { return readerText[r] }
func (b Button) String() string     { return buttonText[b] }
func (d Do) String() string         { return doText[d] }
func (w Where) String() string      { return whereText[w] }

// String is the ratio as printed, pays:stake.
func (r Ratio) String() string { return fmt.Sprintf("%d:%d", r.Num, r.Den) }

// ParseDo reads an answer's name.
func ParseDo(text string) (Do, error) {
	var d Do
	err := enum(&d, text, doText)
	return d, err
}

// ParseBox reads a box's name.
func ParseBox(text string) (Box, error) {
	var b Box
	err := enum(&b, text, boxText)
	return b, err
}

// ParseInput reads one line of game.md section 7. It refuses bad JSON, an
// unknown input or field, and an impossible value, and says which.
func ParseInput(line []byte) (Input, error) {
	var fields map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(line))
	if err := d.Decode(&fields); err != nil {
		return Input{}, fmt.Errorf("not a JSON object: %w", err)
	}
	if d.More() {
		return Input{}, errors.New("more than one JSON value on the line")
	}
	var in Input
	if err := textField(fields, "in", &in.Kind, kindText); err != nil {
		return Input{}, err
	}
	at, ok := fields["at"]
	if !ok {
		return Input{}, errors.New(`field "at" is missing`)
	}
	if err := parseTime(at, &in.At); err != nil {
		return Input{}, fmt.Errorf(`field "at": %w`, err)
	}
	delete(fields, "in")
	delete(fields, "at")
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names) // so that of several faults always the same one is named
	allowed := strings.Fields(inputFieldsFor[in.Kind])
	for _, name := range names {
		if !slices.Contains(allowed, name) {
			return Input{}, fmt.Errorf("field %q is unknown for input %q", name, in.Kind)
		}
		if err := in.set(name, fields[name]); err != nil {
			return Input{}, fmt.Errorf("field %q: %w", name, err)
		}
	}
	if err := in.complete(fields); err != nil {
		return Input{}, err
	}
	return in, in.check()
}

// required fields of an input, beside those without which check refuses it.
var required = [...]string{
	InReader: "what", InPlaced: "box", InLifted: "box", InBets: "open", InInsurance: "do",
	InButton: "name", InFault: "code on", InLock: "on", InLink: "device up", InInactive: "device what",
	InWire: "device line what",
}

func (in *Input) complete(fields map[string]json.RawMessage) error {
	for _, name := range strings.Fields(required[in.Kind]) {
		if _, ok := fields[name]; !ok {
			return fmt.Errorf("input %q lacks field %q", in.Kind, name)
		}
	}
	if in.Kind == InVerdict && in.Verdict.Outcome == 0 && !in.Verdict.Quit {
		return errors.New("verdict lacks an outcome")
	}
	if in.Kind == InReveal && (in.Box == 0) == (in.Hand == 0) {
		return errors.New("reveal wants either a box or a hand")
	}
	return nil
}

// set reads one field.
func (in *Input) set(name string, raw json.RawMessage) error {
	switch name {
	case "card":
		return parseCard(raw, &in.Card)
	case "to":
		return parseEnum(raw, &in.To, toText)
	case "pos":
		return parseNumber(raw, &in.Pos, 10)
	case "again":
		return json.Unmarshal(raw, &in.Again)
	case "outside":
		return parseEnum(raw, &in.Outside, outsideText)
	case "over":
		return json.Unmarshal(raw, &in.Over)
	case "box":
		return parseEnum(raw, &in.Box, boxText)
	case "foreign":
		return json.Unmarshal(raw, &in.Foreign)
	case "hand":
		return parseEnum(raw, &in.Hand, sideText)
	case "open":
		return json.Unmarshal(raw, &in.Open)
	case "closes_at":
		return parseTime(raw, &in.ClosesAt)
	case "what":
		switch in.Kind {
		case InInactive:
			return parseEnum(raw, &in.Spare, spareText)
		case InWire:
			return parseEnum(raw, &in.Wire, wireText)
		}
		return parseEnum(raw, &in.Reader, readerText)
	case "decks":
		return parseNumber(raw, &in.Decks, MaxDecks)
	case "code":
		return parseNumber(raw, &in.Code, 127)
	case "on", "up":
		return json.Unmarshal(raw, &in.On)
	case "why", "device":
		if in.Kind == InAnswer {
			break
		}
		return json.Unmarshal(raw, &in.Name)
	case "line":
		return json.Unmarshal(raw, &in.Line)
	case "address":
		return json.Unmarshal(raw, &in.Address)
	case "value":
		return json.Unmarshal(raw, &in.Value)
	case "name":
		return parseEnum(raw, &in.Button, buttonText)
	case "outcome":
		return parseEnum(raw, &in.Verdict.Outcome, outcomeText)
	case "pairs":
		return in.Verdict.setPairs(raw)
	case "quit":
		return json.Unmarshal(raw, &in.Verdict.Quit)
	}
	if in.Kind == InInsurance {
		return in.Insurance.set(name, raw)
	}
	return in.Answer.set(name, raw)
}

func (i *Insurance) set(name string, raw json.RawMessage) error {
	switch name {
	case "do":
		return parseEnum(raw, &i.Do, insuranceText)
	case "side":
		return parseEnum(raw, &i.Side, sideText)
	case "wins_on":
		return parseEnum(raw, &i.WinsOn, outcomeText)
	case "spot":
		return parseEnum(raw, &i.Spot, sideText)
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	var err error
	i.Pays, err = ParseRatio(text)
	return err
}

// ParseRatio reads what a bet pays, such as 11:1.
func ParseRatio(text string) (Ratio, error) {
	num, den, _ := strings.Cut(text, ":")
	n, err1 := strconv.ParseUint(num, 10, 16)
	d, err2 := strconv.ParseUint(den, 10, 16)
	if err1 != nil || err2 != nil || d == 0 {
		return Ratio{}, fmt.Errorf("%q is not a ratio like 11:1", text)
	}
	return Ratio{uint16(n), uint16(d)}, nil
}

func (a *Answer) set(name string, raw json.RawMessage) error {
	switch name {
	case "do":
		return parseEnum(raw, &a.Do, doText)
	case "by":
		return json.Unmarshal(raw, &a.By)
	case "where":
		return parseEnum(raw, &a.Where, whereText)
	case "order":
		return parseEnum(raw, &a.Order, revealOrderText)
	case "exposed":
		return json.Unmarshal(raw, &a.Exposed)
	case "as_dealt":
		return json.Unmarshal(raw, &a.AsDealt)
	case "off":
		return json.Unmarshal(raw, &a.Off)
	case "device":
		return json.Unmarshal(raw, &a.Device)
	case "new":
		return json.Unmarshal(raw, &a.New)
	case "round":
		return parseNumber(raw, &a.Round, 65535)
	case "for_ms":
		return parseNumber(raw, &a.ForMS, maxShelvedMS)
	case "alert":
		no, err := parseAlert(raw)
		a.Alert = no
		return err
	}
	var cards map[string]json.RawMessage
	if err := json.Unmarshal(raw, &cards); err != nil {
		return err
	}
	for name, card := range cards {
		var b Box
		if err := enum(&b, name, boxText); err != nil {
			return err
		}
		if err := parseCard(card, &a.Cards[b]); err != nil {
			return err
		}
	}
	return nil
}

// parseAlert reads an alert's number from itself, A000123, or the id that a
// table puts before it (table-1-A000123).
func parseAlert(raw json.RawMessage) (uint32, error) {
	text := strings.Trim(string(raw), `"`)
	text = text[strings.LastIndexByte(text, '-')+1:]
	private := strings.HasPrefix(text, "X")
	n, err := strconv.ParseUint(strings.TrimLeft(text, "AX"), 10, 31)
	if private {
		n |= privateAlert
	}
	if err != nil || n&^privateAlert == 0 {
		return 0, fmt.Errorf("%s is not an alert's id like A000123", raw)
	}
	return uint32(n), nil
}

// AlertText is an alert's id within its table: A000123, or X000123 for one
// that only the full view has.
func AlertText(no uint32) string {
	if no&privateAlert != 0 {
		return fmt.Sprintf("X%06d", no&^privateAlert)
	}
	return fmt.Sprintf("A%06d", no)
}

// setPairs reads the reader's pair flags: a list of sides, or a word.
func (v *Verdict) setPairs(raw json.RawMessage) error {
	var sides []string
	switch string(raw) {
	case `"none"`:
		return nil
	case `"both"`:
		sides = sideText[Player:]
	case `"player"`, `"banker"`:
		sides = []string{strings.Trim(string(raw), `"`)}
	default:
		if err := json.Unmarshal(raw, &sides); err != nil {
			return errors.New(`want a list of sides, like ["player","banker"], or none, player, banker, both`)
		}
	}
	for _, text := range sides {
		var s Side
		if err := enum(&s, strings.TrimSuffix(text, "_pair"), sideText); err != nil {
			return err
		}
		v.PlayerPair = v.PlayerPair || s == Player
		v.BankerPair = v.BankerPair || s == Banker
	}
	return nil
}

func parseCard(raw json.RawMessage, to *Card) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	c, err := ParseCard(text)
	*to = c
	return err
}

func parseTime(raw json.RawMessage, to *time.Time) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	*to = at.UTC()
	return err
}

func parseNumber[T ~uint8 | ~uint16 | ~uint32](raw json.RawMessage, to *T, most uint64) error {
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil || n > most {
		return fmt.Errorf("%s is not a whole number from 0 to %d", raw, most)
	}
	*to = T(n)
	return nil
}

func textField[T ~uint8](fields map[string]json.RawMessage, name string, to *T, texts []string) error {
	raw, ok := fields[name]
	if !ok {
		return fmt.Errorf("field %q is missing", name)
	}
	if err := parseEnum(raw, to, texts); err != nil {
		return fmt.Errorf("field %q: %w", name, err)
	}
	return nil
}

func parseEnum[T ~uint8](raw json.RawMessage, to *T, texts []string) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	return enum(to, text, texts)
}

func enum[T ~uint8](to *T, text string, texts []string) error {
	i := slices.Index(texts, text)
	if i < 1 {
		return fmt.Errorf("%q is none of %s", text, strings.Join(texts[1:], ", "))
	}
	*to = T(i)
	return nil
}

// AppendText appends the input as one line of game.md section 7, without the
// line's end. ParseInput reads it back to an equal Input.
func (in *Input) AppendText(b []byte) []byte {
	b = append(b, `{"at":"`...)
	b = in.At.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","in":"`...)
	b = append(b, kindText[in.Kind]...)
	b = append(b, '"')
	w := fieldWriter{b}
	w.text("card", cardText(in.Card))
	w.text("to", toText[in.To])
	w.number("pos", uint64(in.Pos))
	w.flag("again", in.Again)
	w.flag("over", in.Over)
	w.text("outside", outsideText[in.Outside])
	w.text("box", boxText[in.Box])
	w.flag("foreign", in.Foreign)
	w.text("hand", sideText[in.Hand])
	switch in.Kind {
	case InShoe:
		w.number("decks", uint64(in.Decks))
	case InUnread:
		w.text("why", in.Name)
	case InReader:
		w.text("what", readerText[in.Reader])
	case InBets:
		w.truth("open", in.Open)
		if !in.ClosesAt.IsZero() {
			w.text("closes_at", in.ClosesAt.UTC().Format(time.RFC3339Nano))
		}
	case InInsurance:
		w.insurance(&in.Insurance)
	case InButton:
		w.text("name", buttonText[in.Button])
	case InVerdict:
		w.verdict(&in.Verdict)
	case InFault:
		w.value("code", strconv.AppendUint(nil, uint64(in.Code), 10))
		w.truth("on", in.On)
	case InLock:
		w.truth("on", in.On)
	case InSetting:
		w.flag("on", in.On)
		w.text("address", in.Address)
		w.text("value", in.Value)
	case InLink:
		w.value("device", quote(in.Name))
		w.truth("up", in.On)
	case InInactive:
		w.value("device", quote(in.Name))
		w.text("what", spareText[in.Spare])
	case InWire:
		w.value("device", quote(in.Name))
		w.value("line", quote(in.Line))
		w.text("what", wireText[in.Wire])
	case InAnswer:
		w.answer(&in.Answer)
	}
	return append(w.b, '}')
}

func cardText(c Card) string {
	if c == 0 {
		return ""
	}
	return c.String()
}

// fieldWriter appends JSON fields; those without a value are left out.
type fieldWriter struct{ b []byte }

func (w *fieldWriter) value(name string, v []byte) {
	w.b = append(append(append(append(w.b, ',', '"'), name...), '"', ':'), v...)
}

func (w *fieldWriter) text(name, v string) {
	if v != "" {
		w.value(name, quote(v))
	}
}

func (w *fieldWriter) number(name string, v uint64) {
	if v != 0 {
		w.value(name, strconv.AppendUint(nil, v, 10))
	}
}

func (w *fieldWriter) truth(name string, v bool) { w.value(name, strconv.AppendBool(nil, v)) }

func (w *fieldWriter) flag(name string, v bool) {
	if v {
		w.truth(name, true)
	}
}

func (w *fieldWriter) insurance(i *Insurance) {
	w.text("do", insuranceText[i.Do])
	w.text("side", sideText[i.Side])
	w.text("wins_on", outcomeText[i.WinsOn])
	if i.Pays.Den != 0 {
		w.text("pays", i.Pays.String())
	}
	w.text("spot", sideText[i.Spot])
}

func (w *fieldWriter) verdict(v *Verdict) {
	w.text("outcome", outcomeText[v.Outcome])
	switch {
	case v.PlayerPair && v.BankerPair:
		w.value("pairs", []byte(`["player","banker"]`))
	case v.PlayerPair:
		w.value("pairs", []byte(`["player"]`))
	case v.BankerPair:
		w.value("pairs", []byte(`["banker"]`))
	}
	w.flag("quit", v.Quit)
}

func (w *fieldWriter) answer(a *Answer) {
	w.text("do", doText[a.Do])
	w.text("by", a.By)
	cards := fieldWriter{}
	for b, c := range a.Cards {
		cards.text(boxText[b], cardText(c))
	}
	if len(cards.b) > 0 {
		w.value("cards", append(append([]byte{'{'}, cards.b[1:]...), '}'))
	}
	w.text("where", whereText[a.Where])
	w.text("order", revealOrderText[a.Order])
	w.flag("exposed", a.Exposed)
	w.flag("as_dealt", a.AsDealt)
	w.flag("off", a.Off)
	w.text("device", a.Device)
	w.flag("new", a.New)
	w.number("round", uint64(a.Round))
	w.number("for_ms", uint64(a.ForMS))
	if a.Alert != 0 {
		w.text("alert", AlertText(a.Alert))
	}
}

func quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return []byte(`""`) // a string always marshals
	}
	return b
}
