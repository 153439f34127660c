package mqtt

import (
	"context"
	"encoding/json"
	"fmt"
)

const (
	// maxReplay events are sent for one sync; who needs more asks again.
	maxReplay = 2000
	// batchRoom is what the events of a batch may take, so that it stays under
	// maxMessage with its envelope.
	batchRoom = maxMessage - 1<<10
)

// Replay is events that somebody asked for with sync.
type Replay struct {
	User    string
	CmdID   string
	FromSeq uint64 // the first event; 0 none: only the documents again
	Through uint64 // the last one
}

// ReplayBatch is the message replay/1.0, sent to replay/{user}.
type ReplayBatch struct {
	Envelope
	CmdID  string            `json:"cmd_id"` // of the sync
	Events []json.RawMessage `json:"events"` // as on event, marked delayed
	Last   bool              `json:"last"`   // no more come for this sync
}

// Replay sends events again to who asked for them, and after them the reply to
// his sync. It never blocks; false when too many wait.
func (p *Publisher) Replay(r Replay) bool {
	select {
	case p.replays <- r:
		p.Wake()
		return true
	default:
		return false
	}
}

// NewReplay bounds what is asked for: from an event on, of those up to last.
func NewReplay(user, cmdID string, from, last uint64) Replay {
	return Replay{User: user, CmdID: cmdID, FromSeq: from, Through: min(last, from+maxReplay-1)}
}

// replay answers one sync when nothing else is under way. Live events wait for
// it by one batch at most, for it is taken up again where it stopped.
func (s *session) replay(ctx context.Context) error {
	if len(s.window) > 0 {
		return nil
	}
	if s.replaying == nil {
		select {
		case r := <-s.p.replays:
			s.replaying = &r
		default:
			return nil
		}
	}
	r := s.replaying
	if r.FromSeq == 0 {
		s.replaying = nil
		table := s.p.o.Outbox.Table()
		err := s.publishDocuments(ctx, &table, true)
		s.p.Reply(r.User, "sync", table.Seq, Reply{CmdID: r.CmdID, Status: Done, Code: CodeOK, Message: "the documents were sent again"})
		return err
	}
	batch, next, err := s.batchFor(r)
	if err != nil {
		s.replaying = nil
		s.p.Reply(r.User, "sync", s.acked, Reply{CmdID: r.CmdID, Status: Failed, Code: CodeInternal, Message: err.Error()})
		return nil
	}
	body, err := encode(batch)
	if err != nil {
		return err
	}
	if err := s.await(ctx, s.client.Publish(s.p.topic("replay/"+r.User), 1, false, body)); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if r.FromSeq = next; !batch.Last {
		s.p.Wake() // to come back here
		return nil
	}
	s.replaying = nil
	s.p.Reply(r.User, "sync", s.acked, Reply{CmdID: r.CmdID, Status: Done, Code: CodeOK, Message: "all were sent", Result: map[string]uint64{"through_seq": r.Through}})
	return nil
}

// batchFor reads as many events as go into one message, and says which is next.
func (s *session) batchFor(r *Replay) (batch ReplayBatch, next uint64, err error) {
	batch = ReplayBatch{Envelope: s.p.envelope("replay", r.Through, s.p.o.Now()), CmdID: r.CmdID, Events: []json.RawMessage{}}
	next = r.FromSeq
	room := batchRoom
	for next <= r.Through {
		records, err := s.p.o.Outbox.Events(next-1, min(readAhead, int(r.Through-next+1)))
		if err != nil {
			return batch, next, err
		}
		if len(records) == 0 {
			break
		}
		for _, record := range records {
			body, err := s.p.eventMessage(record, true)
			if err != nil {
				return batch, next, err
			}
			if room -= len(body) + 1; room < 0 && len(batch.Events) > 0 {
				return batch, next, nil
			}
			batch.Events = append(batch.Events, body)
			next = record.Seq + 1
		}
	}
	batch.Last = true
	return batch, next, nil
}

// eventMessage is the message of one event.
func (p *Publisher) eventMessage(r Record, delayed bool) ([]byte, error) {
	env := p.envelope("event", r.Seq, r.At)
	env.Delayed = delayed
	event, err := EventOf(env, r, p.o.Key)
	if err != nil {
		return nil, err
	}
	body, err := encode(event)
	if err != nil {
		return nil, fmt.Errorf("event %d: %w", r.Seq, err)
	}
	return body, nil
}
