package mqtt

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// nextHealth is the time of the next health message: every so often, a tenth
// more or less, so that many tables do not speak at once.
func (s *session) nextHealth() <-chan time.Time {
	every := s.p.o.HealthEvery
	return s.p.o.After(every - every/10 + s.p.random(every/5))
}

func (s *session) publishHealth() error {
	p := s.p
	health := Health{
		Envelope: p.envelope("health", s.acked, p.o.Now()),
		UptimeS:  int64(time.Since(p.started).Seconds()), RSSBytes: residentBytes(), MQTT: p.Standing().Backlog,
	}
	if p.o.ReaderHealth != nil {
		reader := p.o.ReaderHealth()
		health.Reader = &reader
	}
	if p.o.Readers != nil {
		health.Readers = p.o.Readers()
	}
	if p.o.Storage != nil {
		health.Storage = p.o.Storage()
	}
	if p.o.Replies != nil {
		health.Commands = p.o.Replies()
	}
	health.Chain = p.lastChain(&health.Envelope)
	if p.o.Machine != nil {
		health.Machine = p.o.Machine()
	}
	body, err := encode(health)
	if err != nil {
		return err
	}
	// Nobody acknowledges it, but what cannot be handed over within the write
	// timeout says that the connection is stuck.
	token := s.client.Publish(p.topic("health"), 0, false, body)
	if done(token) && token.Error() != nil {
		return fmt.Errorf("health: %w", token.Error())
	}
	return nil
}

// lastChain is the chain at the last event; nil when there is none, or none that
// can be read, which shows where events are sent.
func (p *Publisher) lastChain(env *Envelope) *Chain {
	last, kept := p.o.Outbox.event(p.o.Outbox.Table().Seq)
	if !kept {
		return nil
	}
	return chainOf(env, &last, p.o.Key)
}

// residentBytes is the memory this process occupies; 0 where the kernel does
// not say.
func residentBytes() int64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
