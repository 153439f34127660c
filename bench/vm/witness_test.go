//go:build vm

package vm

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"shoed/mqtt"
	"shoed/round"
)

// witness is a board on the host's broker that remembers every event.
type witness struct {
	mu     sync.Mutex
	events map[uint64]string // by seq, as the journal exports them
	came   []time.Time       // when each did, for the first time
	state  mqtt.State        // as last told since the last forget
	alerts *mqtt.Alerts
	status mqtt.Status
	wrong  []error
}

func watch(t testing.TB, server string) *witness {
	t.Helper()
	w := &witness{events: map[uint64]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	var ended <-chan error
	err := wait(nil, patience, func() (err error) {
		ended, err = mqtt.Subscribe(ctx, mqtt.Account{Server: server}, site, tableID, w.message)
		return err
	})
	if err != nil {
		t.Fatalf("the broker: %v", err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("what the host received: %v", err)
		}
	})
	return w
}

func (w *witness) message(topic string, retained bool, payload []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var err error
	switch topic[strings.LastIndexByte(topic, '/')+1:] {
	case "event":
		err = w.event(payload)
	case "state":
		err = json.Unmarshal(payload, &w.state)
	case "alerts":
		w.alerts = &mqtt.Alerts{}
		err = json.Unmarshal(payload, w.alerts)
	case "status":
		err = json.Unmarshal(payload, &w.status)
	}
	if err != nil {
		w.wrong = append(w.wrong, err)
	}
}

func (w *witness) event(payload []byte) error {
	var e mqtt.Event
	if err := json.Unmarshal(payload, &e); err != nil {
		return err
	}
	e.Alert = strings.TrimPrefix(e.Alert, tableID+"-") // the journal knows no table
	text := eventText(e.Seq, e.TS, &e.EventText)
	was, again := w.events[e.Seq]
	switch {
	case again && was != text:
		return fmt.Errorf("event %d came as\n%s\nand again as\n%s", e.Seq, was, text)
	case again && !e.Delayed:
		return fmt.Errorf("event %d came again without a mark", e.Seq)
	case !again && e.Seq != uint64(len(w.came))+1:
		return fmt.Errorf("event %d came after %d", e.Seq, len(w.came))
	case !again:
		w.events[e.Seq], w.came = text, append(w.came, time.Now())
	}
	return nil
}

// eventText is an event in one form, wherever it was read.
func eventText(seq uint64, at string, e *round.EventText) string {
	b, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s %s", seq, at, b)
}

// forget drops what was told of the table's state, so that what is seen next is
// told by what comes next; it returns how many events have come.
func (w *witness) forget() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state, w.alerts, w.status = mqtt.State{}, nil, mqtt.Status{}
	return len(w.events)
}

func (w *witness) received() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.events)
}

// heard waits for the first event after n of them, which tells of a card, and
// returns when it came. A card that the host is not told of is an error, also
// because the power went.
func (w *witness) heard(n int, exited <-chan struct{}) (came time.Time, err error) {
	err = wait(exited, patience, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.came) <= n {
			return errors.New("no event of a card that was drawn")
		}
		came = w.came[n]
		return nil
	})
	return came, err
}

func (w *witness) away() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status.State == mqtt.Online {
		return errors.New("the table is still online")
	}
	return nil
}

func (w *witness) serving() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status.State != mqtt.Online {
		return fmt.Errorf("the table is %q", w.status.State)
	}
	return nil
}

func (w *witness) reader(want string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state.Devices.Reader != want {
		return fmt.Errorf("the reader is %q", w.state.Devices.Reader)
	}
	return nil
}

func (w *witness) phase(want mqtt.Phase) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state.Phase != want {
		return fmt.Errorf("the table is %q", w.state.Phase)
	}
	return nil
}

// alert tells whether an alert of the code is in one of the states: active, acked
// or returned, or "" when none stands.
func (w *witness) alert(code string, states ...string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.alerts == nil {
		return errors.New("no alerts were told")
	}
	if now := w.standing(code).State; !slices.Contains(states, now) {
		return fmt.Errorf("it is %q, of %d alerts", now, len(w.alerts.Items))
	}
	return nil
}

// number is that of the standing alert of a code.
func (w *witness) number(code string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimPrefix(w.standing(code).Alert, tableID+"-")
}

func (w *witness) standing(code string) mqtt.AlertItem {
	for i := range w.alerts.Items {
		if w.alerts.Items[i].Code == code {
			return w.alerts.Items[i]
		}
	}
	return mqtt.AlertItem{}
}

// exported is a journal as shoed journal export prints it.
type exported struct {
	events  []string      // the one with seq n at n-1, as eventText
	inputs  []round.Input // what the shoe said
	answers int
	open    bool // a round is in hand
	decided []string
	voided  int
	filled  [6]bool // boxes with a card, as the sensors told
	placed  int     // how often one was told
}

func parseExport(text string) (*exported, error) {
	var x exported
	for line := range strings.Lines(text) {
		if err := x.line([]byte(line)); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
	}
	return &x, nil
}

func (x *exported) line(line []byte) error {
	if in, err := round.ParseInput(line); err == nil {
		x.input(in)
		return nil
	}
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	return x.event(&e)
}

// entry is an exported event; those for surveillance alone have no seq.
type entry struct {
	Seq uint64 `json:"seq"`
	At  string `json:"at"`
	round.EventText
}

func (x *exported) input(in round.Input) {
	switch in.Kind {
	case round.InAnswer:
		x.answers++
	case round.InPlaced:
		x.filled[in.Box-round.P1] = true
		x.placed++
	case round.InLifted:
		x.filled[in.Box-round.P1] = false
	case round.InCard, round.InShow, round.InCut, round.InReader, round.InVerdict, round.InFault, round.InLock, round.InSetting, round.InShoe, round.InUnread:
		x.inputs = append(x.inputs, in)
	}
}

func (x *exported) event(e *entry) error {
	switch {
	case e.Ev == "":
		return errors.New("neither an input nor an event")
	case e.Seq == 0:
		return nil
	}
	if e.Seq != uint64(len(x.events))+1 {
		return fmt.Errorf("this event comes after %d", len(x.events))
	}
	x.events = append(x.events, eventText(e.Seq, e.At, &e.EventText))
	switch e.Ev {
	case round.RoundOpened.String():
		x.open = true
	case round.RoundDecided.String(), round.RoundVoided.String():
		x.open = false
	}
	if e.Ev == round.RoundVoided.String() {
		x.voided++
	}
	if e.Ev == round.RoundDecided.String() {
		x.decided = append(x.decided, fmt.Sprint(e.Player.Cards, e.Banker.Cards, e.Outcome))
	}
	return nil
}

// holds: every event that was received is in the journal, and says the same.
func (w *witness) holds(x *exported) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wrong) > 0 {
		return w.wrong[0]
	}
	for seq, text := range w.events {
		switch {
		case seq == 0 || seq > uint64(len(x.events)):
			return fmt.Errorf("event %d was received, and the journal ends with %d:\n%s", seq, len(x.events), text)
		case x.events[seq-1] != text:
			return fmt.Errorf("event %d was received as\n%s\nand is in the journal as\n%s", seq, text, x.events[seq-1])
		}
	}
	return nil
}

// capturedRounds are the rounds that the capture's shoe itself reported, in the
// form of exported.decided.
func capturedRounds(t testing.TB) []string {
	t.Helper()
	f, err := os.Open("../../scanner/testdata/angel/angel_eye_rounds.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rounds []string
	suits := strings.NewReplacer("S", "s", "H", "h", "D", "d", "C", "c")
	outcome := map[string]string{"P": "player", "B": "banker", "T": "tie"}
	for _, row := range rows[1:] {
		rounds = append(rounds, fmt.Sprint(strings.Fields(suits.Replace(row[1])), strings.Fields(suits.Replace(row[2])), outcome[row[5]]))
	}
	return rounds
}
