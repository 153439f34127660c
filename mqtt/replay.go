package mqtt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
)

const (
	// MaxReplay events are sent for one sync; who needs more asks again.
	MaxReplay = 2000
	// batchRoom is what the events of a batch may take, so that it stays under
	// maxMessage with its envelope.
	batchRoom = maxMessage - 1<<10
	// readBatch events are looked at before live ones have their turn.
	readBatch = 4 * readAhead
)

// Replay is events that somebody asked for with sync: those with numbers from
// FromSeq through Through, or of them those of one round, wherever they are.
// With neither a number nor a round it is the documents again.
type Replay struct {
	User    string `json:"-"`
	CmdID   string `json:"-"`
	FromSeq uint64 `json:"from_seq,omitempty"`
	Through uint64 `json:"through_seq,omitempty"`
	Shoe    uint32 `json:"shoe,omitempty"`
	Round   uint16 `json:"round,omitempty"`
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
	if r.FromSeq == 0 && r.Shoe == 0 {
		table := s.p.o.Outbox.Table()
		s.replayed(Done, CodeOK, "the documents were sent again")
		return s.publishDocuments(ctx, &table, true)
	}
	batch, err := s.nextBatch(r)
	if err != nil {
		s.replayed(Failed, CodeInternal, "the events cannot be read")
		return nil
	}
	if len(batch.Events) > 0 || batch.Last {
		body, err := encode(batch)
		if err != nil {
			return err
		}
		if err := s.await(ctx, s.client.Publish(s.p.topic("replay/"+r.User), 1, false, body)); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
	}
	if !batch.Last {
		s.p.Wake() // to come back here
		return nil
	}
	s.replayed(Done, CodeOK, "all were sent")
	return nil
}

// replayed ends the sync under way with its last reply.
func (s *session) replayed(status Outcome, code ReplyCode, message string) {
	r := s.replaying
	s.replaying = nil
	s.p.Reply(r.User, "sync", s.acked, Reply{CmdID: r.CmdID, Status: status, Code: code, Message: message})
}

// nextBatch looks at some events, and moves r.FromSeq over them.
func (s *session) nextBatch(r *Replay) (batch ReplayBatch, err error) {
	batch = ReplayBatch{Envelope: s.p.envelope("replay", r.Through, s.p.o.Now()), CmdID: r.CmdID, Events: []json.RawMessage{}}
	if r.FromSeq == 0 {
		if r.FromSeq, err = s.shoeStart(r.Shoe); err != nil {
			return batch, err
		}
	}
	room := batchRoom
	for looked := 0; r.FromSeq <= r.Through && looked < readBatch; {
		records, err := s.p.o.Outbox.Events(r.FromSeq-1, min(readAhead, int(r.Through-r.FromSeq+1)))
		if err != nil {
			return batch, err
		}
		if len(records) == 0 {
			break
		}
		looked += len(records)
		for _, record := range records {
			event, err := s.p.event(record, true)
			if err != nil {
				return batch, err
			}
			if r.Shoe != 0 && event.Shoe != nil && *event.Shoe > r.Shoe {
				r.FromSeq = r.Through + 1
				break
			}
			if r.Shoe == 0 || event.Round != nil && *event.Round == r.Round {
				body, err := encode(event)
				if err != nil {
					return batch, err
				}
				if room -= len(body) + 1; room < 0 && len(batch.Events) > 0 {
					return batch, nil
				}
				batch.Events = append(batch.Events, body)
			}
			r.FromSeq = record.Seq + 1
		}
	}
	batch.Last = r.FromSeq > r.Through
	return batch, nil
}

// shoeStart finds the first event of a shoe, or the first that is kept. Shoes
// follow one another, so halving finds it.
func (s *session) shoeStart(shoe uint32) (uint64, error) {
	var failed error
	before := sort.Search(int(s.p.o.Outbox.Table().Seq), func(i int) bool {
		records, err := s.p.o.Outbox.Events(uint64(i), 1)
		if err != nil || len(records) == 0 {
			return false // dropped: before all that is kept
		}
		event, err := s.p.event(records[0], true)
		failed = errors.Join(failed, err)
		return event.Shoe != nil && *event.Shoe >= shoe
	})
	return uint64(before) + 1, failed
}

// event is the message of one event.
func (p *Publisher) event(r Record, delayed bool) (Event, error) {
	env := p.envelope("event", r.Seq, r.At)
	env.Delayed = delayed
	return EventOf(env, r, p.o.Key)
}
