package mqtt

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
)

// Account is a broker and who one is there: a program that watches or commands
// tables, and is none.
type Account struct {
	Server   string // mqtt://host:port and so on
	User     string // optional
	Password string // optional
	TLS      TLS    // optional
}

// visit is one connection of such a program.
type visit struct {
	Account
	server *url.URL
	client paho.Client
	cancel context.CancelFunc
	lost   chan error
}

// connect makes a connection that lives as long as ctx, under a client id of
// its own. The error names broker and user.
func (a Account) connect(ctx context.Context) (*visit, error) {
	u, err := parseServer(a.Server)
	if err != nil {
		return nil, err
	}
	security, err := a.TLS.load()
	if err != nil {
		return nil, err
	}
	alive, cancel := context.WithCancel(ctx)
	v := &visit{Account: a, server: u, cancel: cancel, lost: make(chan error, 1)}
	o := clientOptions(alive, u, forServer(security, u), "shoed-"+rand.Text()[:16], defaultKeepAlive, defaultWrite)
	o.SetUsername(a.User).SetPassword(a.Password)
	o.SetConnectionLostHandler(func(_ paho.Client, err error) { v.lost <- err }) // once a client
	v.client = paho.NewClient(o)
	token := v.client.Connect().(*paho.ConnectToken)
	<-token.Done() // bounded by the connect timeout, and by ctx
	if err := token.Error(); err != nil {
		v.leave()
		switch token.ReturnCode() {
		case packets.ErrRefusedBadUsernameOrPassword, packets.ErrRefusedNotAuthorised:
			return nil, v.wrong(fmt.Errorf("it refuses user %q: check name and password: %w", a.User, err))
		}
		return nil, v.wrong(err)
	}
	return v, nil
}

// Put publishes one message as it is: what any other program at the broker could
// do to a table, to show what becomes of it. It returns once the broker has it.
func Put(ctx context.Context, a Account, topic string, retained bool, body []byte) error {
	v, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer v.leave()
	return v.publish(ctx, topic, retained, body)
}

// leave disconnects.
func (v *visit) leave() {
	v.client.Disconnect(0)
	v.cancel()
}

// wrong says at which broker something went wrong.
func (v *visit) wrong(err error) error { return fmt.Errorf("broker %s: %w", v.server.Host, err) }

// subscribe gives what comes on the topics to got, in the order of arrival, one
// at a time; got must not block. It returns once the broker has granted all.
func (v *visit) subscribe(ctx context.Context, filters map[string]byte, got func(topic string, retained bool, payload []byte)) error {
	token := v.client.SubscribeMultiple(filters, func(_ paho.Client, m paho.Message) { got(m.Topic(), m.Retained(), m.Payload()) }).(*paho.SubscribeToken)
	if err := v.await(ctx, token); err != nil {
		return v.wrong(fmt.Errorf("subscription: %w", err))
	}
	for topic, code := range token.Result() { // a refusal is no error to paho
		if code > 1 {
			return v.wrong(fmt.Errorf("subscription of %s is refused (code %#x): give user %q the right to read it", topic, code, v.User))
		}
	}
	return nil
}

// publish returns once the broker has taken the message, which says nothing of
// the right to send it.
func (v *visit) publish(ctx context.Context, topic string, retained bool, body []byte) error {
	if err := v.await(ctx, v.client.Publish(topic, 1, retained, body)); err != nil {
		return v.wrong(fmt.Errorf("%s: %w", topic, err))
	}
	return nil
}

// await waits until the broker has answered.
func (v *visit) await(ctx context.Context, token paho.Token) error {
	bounded, done := context.WithTimeoutCause(ctx, defaultAck, errors.New("the broker does not answer"))
	defer done()
	select {
	case <-token.Done():
		return token.Error()
	case err := <-v.lost:
		v.lost <- err // for whoever waits next
		return fmt.Errorf("the broker has ended the connection: %w", err)
	case <-bounded.Done():
		return context.Cause(bounded)
	}
}
