package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"shoed/journal"
	"shoed/mqtt"
	"shoed/round"
)

// checkRules says what the rules leave to people.
func checkRules(_ context.Context, p *inspected) []mqtt.Finding {
	var found []mqtt.Finding
	if p.rules.Placement == round.PlacementNone {
		found = warned("boxes", "no sensor watches them (placement=none): a card in a wrong box is not seen, the order of dealing says where it lies")
	} else {
		found = passed("boxes", "sensors watch them (placement=%v)", p.rules.Placement)
	}
	if p.rules.RoundStart == round.StartFirstCard {
		found = append(found, warned("round start", "round_start=first_card: an extra card passes for the next round's first; give reader, bets, button or boxes if the table can tell")...)
	}
	if loose := append(p.rules.Relaxed(), relaxed(p.access.Dual)...); len(loose) > 0 {
		return append(found, warned("rules", "looser than the usual ones, and listed in info: %s", strings.Join(loose, " "))...)
	}
	return append(found, passed("rules", "none is looser than the usual ones")...)
}

// checkFaces says whether the reader tells faces in time for insurance.
func checkFaces(_ context.Context, p *inspected) []mqtt.Finding {
	const name = "faces"
	masked, err := p.masked()
	switch {
	case err != nil:
		return warned(name, "whether the reader masks them is not known: %v", err)
	case masked == nil:
		return warned(name, "whether the reader masks them shows with its first card: then no insurance could be offered")
	case *masked && p.rules.Insurance == round.InsuranceOn:
		return warned(name, "the reader masks them until the round's end, so no insurance is offered during play; let its maker unmask it, or set insurance=off")
	case *masked:
		return passed(name, "the reader masks them until the round's end; no insurance is offered")
	}
	return passed(name, "the reader tells each card's as it is drawn")
}

// masked is nil when the reader has told no card yet. It is known from the
// running shoed, or else from its journal.
func (p *inspected) masked() (*bool, error) {
	switch {
	case p.says != nil:
		return p.says.Masked, nil
	case p.running:
		return nil, errors.New("shoed runs here and does not tell this user; ask with sudo")
	}
	path := p.under(filepath.Join(p.cfg.Journal.Dir, journalFile))
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	r, err := journal.OpenRead(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	last, ok, err := r.LastSnapshot()
	if err != nil || !ok {
		return nil, err
	}
	var s struct{ Desk desk }
	err = json.Unmarshal(last.Body, &s)
	return s.Desk.Masked, err
}
