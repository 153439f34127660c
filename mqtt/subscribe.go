package mqtt

import (
	"context"
	"fmt"
)

// Subscribe connects to a broker and hands every public message of a table to
// got, in the order of arrival, one at a time; got must not block. retained
// says that the message was there before. It returns once the broker has
// granted every topic: where it asks who one is, to a supervisor's account or
// surveillance's. The channel gives one value at the end: nil when ctx has
// ended, otherwise why the connection was lost. It does not reconnect: what was
// missed meanwhile is for the caller to judge, by seq.
func Subscribe(ctx context.Context, a Account, site, table string, got func(topic string, retained bool, payload []byte)) (<-chan error, error) {
	v, err := a.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("subscriber: %w", err)
	}
	filters := map[string]byte{}
	for _, c := range channels {
		if c.told() {
			filters[Topic(site, table, c.name)] = c.qos
		}
	}
	if err := v.subscribe(ctx, filters, got); err != nil {
		v.leave()
		return nil, fmt.Errorf("subscriber: %w", err)
	}
	ended := make(chan error, 1)
	go func() { // ends with ctx or the connection
		defer v.leave()
		select {
		case err := <-v.lost:
			ended <- fmt.Errorf("subscriber: %w", v.wrong(err))
		case <-ctx.Done():
			ended <- nil
		}
	}()
	return ended, nil
}
