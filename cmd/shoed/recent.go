package main

import (
	"sync"

	"shoed/journal"
	"shoed/mqtt"
)

// recentEvents bounds the events kept in memory: several rounds' worth.
const recentEvents = 256

// recent is the newest durable events. The publisher is nearly always one event
// behind, and reading that one back from the journal takes longer than sending
// it (0.4 ms).
type recent struct {
	mu     sync.Mutex
	events []mqtt.Record // contiguous by Seq
}

// add takes records that are durable now.
func (r *recent) add(records []journal.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range records {
		if rec.Seq != 0 {
			r.events = append(r.events, outboxRecord(rec))
		}
	}
	if over := len(r.events) - recentEvents; over > 0 {
		r.events = append(r.events[:0:0], r.events[over:]...)
	}
}

// outboxRecord is a record of the journal as the publisher sees it.
func outboxRecord(rec journal.Record) mqtt.Record {
	return mqtt.Record{No: rec.No, Seq: rec.Seq, At: rec.At, Cause: rec.Source, Body: rec.Body, Head: rec.Head, Command: rec.Kind == journal.Command}
}

func outboxRecords(kept []journal.Record, err error) ([]mqtt.Record, error) {
	records := make([]mqtt.Record, len(kept))
	for i := range kept {
		records[i] = outboxRecord(kept[i])
	}
	return records, err
}

// after gives up to max events that follow seq; false when the first of them
// is no longer here, or is not known to be the next.
func (r *recent) after(seq uint64, max int) ([]mqtt.Record, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == 0 || seq+1 < r.events[0].Seq {
		return nil, false
	}
	from := min(int(seq+1-r.events[0].Seq), len(r.events))
	return append([]mqtt.Record(nil), r.events[from:min(from+max, len(r.events))]...), true
}
