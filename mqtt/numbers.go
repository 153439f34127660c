package mqtt

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Numbers are the last ones that a table has given.
type Numbers struct {
	Shoe, Alert uint32
	Private     uint32 // alert that is not public
	Session     uint64
}

// alertsBefore are skipped, because those that were cleared have left no trace
// in what a broker keeps.
const alertsBefore = 1000

// LastNumbers finds at a broker the numbers that a table, which is gone, has come
// to. The account is of somebody who may read all its public topics. A table
// that may still be at work is an error.
func LastNumbers(ctx context.Context, a Account, site, table string) (n Numbers, err error) {
	kept, err := keptOf(ctx, a, site, table)
	if err != nil {
		return n, err
	}
	var status Status
	var state State
	var alerts Alerts
	for name, doc := range map[string]any{"status": &status, "state": &state, "alerts": &alerts} {
		if err := json.Unmarshal(kept[name], doc); err != nil {
			return n, fmt.Errorf("%s of the table: %w", name, err)
		}
	}
	switch {
	case status.State != Offline && status.State != Stopped:
		return n, fmt.Errorf("table %s is %s at the broker: stop the other one first, for two may not have one name", table, status.State)
	case state.Shoe == nil:
		return n, fmt.Errorf("table %s had no shoe, so there is nothing to carry on; if it was adopted itself, do that again from the same place", table)
	}
	n = Numbers{Shoe: state.Shoe.No, Session: status.Session}
	ids := []string{}
	if state.Paused != nil {
		ids = append(ids, state.Paused.Alert)
	}
	for _, item := range alerts.Items {
		ids = append(ids, item.Alert)
	}
	for _, id := range ids {
		no, err := strconv.ParseUint(strings.TrimPrefix(id, table+"-A"), 10, 31)
		if err == nil {
			n.Alert = max(n.Alert, uint32(no))
		}
	}
	n.Alert += alertsBefore
	n.Private = alertsBefore
	return n, nil
}

// keptOf reads what a broker keeps of a table, by the topics' names.
func keptOf(ctx context.Context, a Account, site, table string) (map[string][]byte, error) {
	ctx, stop := context.WithTimeout(ctx, connectTimeout)
	defer stop()
	var mu sync.Mutex
	kept := map[string][]byte{}
	wanted := []string{"status", "state", "alerts"}
	all, lacking := make(chan struct{}), len(wanted)
	ended, err := Subscribe(ctx, a, site, table, func(topic string, retained bool, payload []byte) {
		mu.Lock()
		defer mu.Unlock()
		name := topic[strings.LastIndexByte(topic, '/')+1:]
		if !slices.Contains(wanted, name) {
			return
		}
		if kept[name] == nil {
			if lacking--; lacking == 0 {
				close(all)
			}
		}
		kept[name] = slices.Clone(payload)
	})
	if err != nil {
		return nil, err
	}
	late := time.NewTimer(3 * time.Second)
	defer late.Stop()
	select {
	case <-all:
	case <-late.C:
		mu.Lock()
		defer mu.Unlock()
		return nil, fmt.Errorf("the broker keeps %d of the %d documents of table %s of %s: are these its names, and may user %q read them?", len(kept), len(wanted), table, site, a.User)
	case err := <-ended:
		return nil, fmt.Errorf("the broker was asked in vain: %w", err)
	}
	stop()
	<-ended
	mu.Lock()
	defer mu.Unlock()
	return kept, nil
}
