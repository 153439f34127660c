package mqtt

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// Subscribe connects to a broker and hands every public message of a table to
// got, in the order of arrival, one at a time; got must not block. retained
// says that the message was there before. It returns once the broker has
// granted every topic. The channel gives one value at the end: nil when ctx has
// ended, otherwise why the connection was lost. It does not reconnect: what was
// missed meanwhile is for the caller to judge, by seq.
func Subscribe(ctx context.Context, server, site, table string, got func(topic string, retained bool, payload []byte)) (<-chan error, error) {
	u, err := parseServer(server)
	if err != nil {
		return nil, err
	}
	alive, cancel := context.WithCancel(ctx)
	lost := make(chan error, 1)
	o := clientOptions(alive, u, forServer(&tls.Config{}, u), "shoed-"+rand.Text()[:16], defaultKeepAlive, defaultWrite)
	o.SetConnectionLostHandler(func(_ paho.Client, err error) { lost <- err })
	client := paho.NewClient(o)
	leave := func() {
		cancel()
		client.Disconnect(0)
	}
	connect := client.Connect()
	<-connect.Done() // bounded by the connect timeout, and by ctx
	if err := connect.Error(); err != nil {
		leave()
		return nil, fmt.Errorf("subscriber: broker %s: %w", u.Host, err)
	}
	if err := subscribe(ctx, client, site, table, got); err != nil {
		leave()
		return nil, fmt.Errorf("subscriber: broker %s: %w", u.Host, err)
	}
	ended := make(chan error, 1)
	go func() { // ends with ctx or the connection
		defer leave()
		select {
		case err := <-lost:
			ended <- fmt.Errorf("subscriber: broker %s: %w", u.Host, err)
		case <-ctx.Done():
			ended <- nil
		}
	}()
	return ended, nil
}

func subscribe(ctx context.Context, client paho.Client, site, table string, got func(string, bool, []byte)) error {
	filters := map[string]byte{}
	for _, c := range channels {
		if c.told() {
			filters[Topic(site, table, c.name)] = c.qos
		}
	}
	token := client.SubscribeMultiple(filters, func(_ paho.Client, m paho.Message) { got(m.Topic(), m.Retained(), m.Payload()) }).(*paho.SubscribeToken)
	wait, done := context.WithTimeout(ctx, defaultAck)
	defer done()
	select {
	case <-token.Done():
	case <-wait.Done():
		return fmt.Errorf("subscription: %w", wait.Err())
	}
	if err := token.Error(); err != nil {
		return err
	}
	for topic, code := range token.Result() { // a refusal is no error to paho
		if code > 1 {
			return fmt.Errorf("subscription of %s is refused (code %#x)", topic, code)
		}
	}
	return nil
}
