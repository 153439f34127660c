package mqtt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// subscribe asks for the table's commands and its own status.
func (s *session) subscribe(ctx context.Context) error {
	status, commands := s.p.topic("status"), s.p.topic("cmd/+/+")
	token := s.client.SubscribeMultiple(map[string]byte{status: 1, commands: 1}, func(c paho.Client, m paho.Message) {
		if m.Topic() == status {
			s.hear(c, m)
		} else {
			s.command(m)
		}
	}).(*paho.SubscribeToken)
	if err := s.await(ctx, token); err != nil {
		return fmt.Errorf("subscription of %s and %s: %w", status, commands, err)
	}
	for topic, granted := range token.Result() {
		if granted > 1 { // paho reports no error for it
			return fmt.Errorf("subscription of %s: the broker refuses it (code %#x): give user %q the right to read it", topic, granted, s.p.o.User)
		}
	}
	return nil
}

// hear runs in paho's goroutine. When there is no room the message is one of a
// crowd, of which the loop sees enough.
func (s *session) hear(_ paho.Client, m paho.Message) {
	status := seen{retained: m.Retained()}
	if json.Unmarshal(m.Payload(), &status.Status) != nil {
		return // nobody's status
	}
	select {
	case s.own <- status:
	default:
	}
}

// meet acts on what our own status topic says (contract.md, Order 5).
//
// A retained message was there before us. If it is of another process, that is
// proof of a second one only when this process has been online on this broker
// before, and the message is not of our own past, which a broker that was
// restarted from an old store may still hold.
func (s *session) meet(ctx context.Context, status seen) error {
	p := s.p
	another := status.Instance != p.o.Instance
	gone := status.State == Offline || status.State == Stopped
	past := status.Epoch == p.o.Epoch && status.Session < p.first
	switch {
	case another && (status.retained && s.was && !past || !status.retained && !gone):
		return fmt.Errorf("%w: instance %q, session %d, epoch %q", errDuplicate, status.Instance, status.Session, status.Epoch)
	case !status.retained && gone:
		// The will of a connection that is no more, ours or a predecessor's.
		return s.publishStatus(ctx, Online, "")
	}
	return nil
}

// command runs in paho's goroutine and hands on what somebody asks of the table.
func (s *session) command(m paho.Message) {
	rest := strings.TrimPrefix(m.Topic(), s.p.topic("cmd/"))
	user, name, found := strings.Cut(rest, "/")
	switch {
	case !found:
	case user == s.p.o.Table && name == loopback:
		select {
		case s.echo <- struct{}{}:
		default:
		}
	case s.p.o.Command != nil:
		s.p.o.Command(user, name, m.Retained(), m.Payload())
	}
}

// callSelf sends the table's own loopback. It finds a connection that is up but
// deaf: a broker may lose a subscription, and nobody could command the table.
func (s *session) callSelf() {
	if s.loop != nil {
		return // the last one is awaited
	}
	s.client.Publish(s.p.topic("cmd/"+s.p.o.Table+"/"+loopback), 1, false, "{}")
	s.loop = time.After(s.p.o.AckTimeout)
}

// deaf judges that the loopback did not come. Where it never came the broker
// may not let the table send it: then nothing is known.
func (s *session) deaf() error {
	s.loop = nil
	if s.p.echoed[s.server.Host] {
		return errors.New("the connection is up but deaf: the table's own " + loopback + " does not come back")
	}
	s.p.report(slog.LevelWarn, "loopback_denied", s.server, "the table's own "+loopback+" does not come back: commands may not arrive; give the user the right to write it",
		"user", s.p.o.User, "topic", s.p.topic("cmd/"+s.p.o.Table+"/"+loopback))
	return nil
}
