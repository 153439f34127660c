package mqtt

import (
	"encoding/json"
	"fmt"

	"shoed/odds"
	"shoed/round"
)

// Audit is the message audit/1.0, for surveillance: every event of the full
// view, those not public among them, and every command with its reply. What is
// not public has the seq of the last event before it.
type Audit struct {
	Event
	JSeq  uint64 `json:"jseq"`            // the journal's own number
	Given *Given `json:"given,omitempty"` // with ev "command"
}

// commandEv is the ev of a command in audit.
const commandEv = "command"

// auditOf is the message of a record.
func (p *Publisher) auditOf(r Record, last uint64, delayed bool) (Audit, error) {
	env := p.envelope("audit", max(r.Seq, last), r.At)
	env.Delayed = delayed
	if r.Command {
		var g Given
		if err := json.Unmarshal(r.Body, &g); err != nil {
			return Audit{}, fmt.Errorf("journal record %d is no command: %w", r.No, err)
		}
		if g.Command == round.DoCorrect.String() || g.Command == round.DoManual.String() {
			g.Body.Args = nil // they name cards, perhaps before the table has shown them; the events follow
		}
		return Audit{Event: Event{Envelope: env, EventText: round.EventText{Ev: commandEv}}, JSeq: r.No, Given: &g}, nil
	}
	event, err := EventOf(env, r, p.o.Key)
	if err != nil {
		return Audit{}, err
	}
	for i := range event.Offers {
		event.Offers[i].Edge = odds.EdgeOf(&event.Offers[i])
	}
	return Audit{Event: event, JSeq: r.No}, nil
}

// nextAudit takes the next message of the full view that comes before the
// public event r, or with it; nil when there is none left. What comes after the
// last public event waits for the next: nothing on the table moves until then.
func (s *session) nextAudit(r *Record) ([]byte, error) {
	if s.p.o.Outbox.Audit == nil || s.audited >= r.No {
		return nil, nil
	}
	if len(s.aside) == 0 {
		var err error
		if s.aside, err = s.p.o.Outbox.Audit(s.audited, r.No, readAhead); err != nil {
			return nil, err
		}
		if len(s.aside) == 0 {
			s.audited = r.No
			return nil, nil
		}
	}
	next := s.aside[0]
	message, err := s.p.auditOf(next, s.handed, next.Seq <= s.delayed)
	if err != nil {
		return nil, err
	}
	body, err := encode(message)
	if err != nil {
		return nil, fmt.Errorf("audit %d: %w", next.No, err)
	}
	s.aside, s.audited = s.aside[1:], next.No
	return body, nil
}

// auditFrom is the journal's number of the last event that was delivered: of
// the full view, all before it was too.
func (s *session) auditFrom() uint64 {
	if s.p.o.Outbox.Audit == nil {
		return 0
	}
	last, _ := s.p.o.Outbox.event(s.acked) // dropped: what is kept is after it, and is sent once more
	return last.No
}
