package main

import (
	"context"
	"time"

	"shoed/round"
)

// brokerAway is how long the broker may be away before somebody is told: a
// restart of it is over by then.
const brokerAway = 10 * time.Second

// part is something of the machine that may fail while play goes on.
type part struct {
	device string // as round knows it
	// failing grows while it fails, where it should be told again, and is 0 while
	// it does not.
	failing func() int
	told    int // of failing, as the table knows it
}

// watch looks at each part and puts on record what has changed.
func (c *core) watch(ctx context.Context) error {
	for i := range c.parts {
		p := &c.parts[i]
		now := p.failing()
		known := c.state.Failing(p.device)
		if known && p.told == 0 { // from before a restart
			p.told = now
		}
		if known == (now > 0) && now <= p.told {
			p.told = now
			continue
		}
		p.told = now
		if err := c.take(ctx, round.Input{At: c.now(), Kind: round.InLink, Name: p.device, On: now == 0}); err != nil {
			return err
		}
	}
	return nil
}

// parts are those that this service can see.
func (s *service) parts() []part {
	failing := func(is func() bool) func() int {
		return func() int {
			if is() {
				return 1
			}
			return 0
		}
	}
	away := s.now()
	return []part{
		{device: round.BrokerDevice, failing: failing(func() bool {
			if s.publisher.Connected() {
				away = s.now()
			}
			return s.now().Sub(away) > brokerAway
		})},
		{device: round.ClockDevice, failing: failing(func() bool { return clockState() == "unset" })},
		{device: round.PowerDevice, failing: failing(func() bool {
			low := undervoltage(s.sysfs)
			return low != nil && *low
		})},
		{device: round.CertificateDevice, failing: func() int { _, at := s.publisher.Expiry(); return nearing(at, time.Now()) }},
		{device: round.CommandsDevice, failing: failing(func() bool { return s.retained.Swap(false) })},
		{device: round.PublisherDevice, failing: failing(s.publisher.Duplicated)},
		{device: round.LampsDevice, failing: failing(s.lamps.failing)},
	}
}

// nearing is how often the end of a certificate should have been told: once
// with 30 days to go, again with 7 and with 1.
func nearing(end, now time.Time) int {
	times := 0
	for _, days := range []int{30, 7, 1} {
		if !end.IsZero() && end.Sub(now) < time.Duration(days)*24*time.Hour {
			times++
		}
	}
	return times
}
