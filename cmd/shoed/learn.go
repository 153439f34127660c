package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"shoed/config"
	"shoed/device"
	"shoed/round"
	"shoed/scanner"
)

// maxDecks that can be learned: the most that a shoe holds.
const maxDecks = 12

func learnCommand() *cobra.Command {
	var configPath, orderFile, out string
	var boxes, cut, force bool
	var decks int
	cmd := &cobra.Command{
		Use:   "learn --out FILE",
		Short: "Learn which code means which card, by dealing a known deck",
		Long: `Learn makes the file of codes for a reader that tells codes instead of cards. It
says which card to deal next, takes the reader's code of it, and refuses a code
that it has already. Cards that look alike mostly have the same code: one deck
teaches all. Where each card has a code of its own, as RFID tags have, give --decks.

The order is that of a new deck: spades, hearts, diamonds, clubs, each from the
ace to the king; or that of --order, a file with all 52 cards, such as As 2s 3s.

Type u to take the last card back, q to stop. What is learned is kept after every
card in FILE.part, and the same command goes on there. The file is made when all
is learned; then name it in the configuration: reader.codes_file or
boxes.codes_file. Stop shoed first: only one can have the reader's line.`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" || decks < 1 || decks > maxDecks {
				return usageError{fmt.Errorf("needed are --out and 1 to %d --decks", maxDecks)}
			}
			order, err := learnOrder(orderFile, decks, cut)
			if err != nil {
				return err
			}
			cfg, err := loadConfig(configPath)
			if err != nil {
				return err
			}
			l := learning{order: order, file: out, force: force, out: cmd.OutOrStdout()}
			if err := l.open(cfg, boxes); err != nil {
				return err
			}
			return l.run(cmd.Context(), cmd.InOrStdin())
		},
	}
	f := cmd.Flags()
	f.StringVar(&configPath, "config", "", "configuration file of the table")
	f.BoolVar(&boxes, "boxes", false, "learn from the sensors of the boxes: put each card into any box")
	f.StringVar(&orderFile, "order", "", "file with the 52 cards of a deck in the order in which they are dealt")
	f.IntVar(&decks, "decks", 1, "how many decks, one after the other; more than one only where every card has its own code")
	f.BoolVar(&cut, "cut", false, "learn the cut card too, at the end")
	f.StringVar(&out, "out", "", "the file to make")
	f.BoolVar(&force, "force", false, "replace the file if it is there")
	return cmd
}

// learnOrder is what is dealt, in its order.
func learnOrder(file string, decks int, cut bool) ([]scanner.Meaning, error) {
	var deck []scanner.Meaning
	for i := range round.Faces {
		deck = append(deck, scanner.Meaning{Card: round.CardAt(i)})
	}
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if deck, err = deckOf(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	order := slices.Repeat(deck, decks)
	if cut {
		order = append(order, scanner.Meaning{Cut: true})
	}
	return order, nil
}

// deckOf reads the cards of a deck, with spaces or lines between them; # begins a
// comment.
func deckOf(text string) (deck []scanner.Meaning, err error) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		for word := range strings.FieldsSeq(line) {
			card, err := round.ParseCard(word)
			m := scanner.Meaning{Card: card}
			switch {
			case err != nil:
				return nil, err
			case !card.Known() || slices.Contains(deck, m):
				return nil, fmt.Errorf("%v is there twice, or is no card", card)
			}
			deck = append(deck, m)
		}
	}
	if len(deck) != round.Faces {
		return nil, fmt.Errorf("%d cards instead of %d", len(deck), round.Faces)
	}
	return deck, nil
}

// learning is a deck that is being dealt.
type learning struct {
	order    []scanner.Meaning
	codes    []string // of the first of them
	file     string   // to be made
	force    bool     // though it is there
	line     device.Options
	protocol string
	options  scanner.Options
	decoder  scanner.Decoder
	opened   bool // the line was, at least once
	out      io.Writer
}

var errStopped = errors.New("stopped")

// open finds the line to learn from, and makes its decoder. The codes that the
// configuration names may not be there yet.
func (l *learning) open(cfg *config.Config, boxes bool) (err error) {
	r, b := cfg.Reader, cfg.Boxes
	if boxes {
		b.Codes, b.CodesFile = nil, ""
		l.line, l.protocol = boxesLine(&b), b.Protocol
		l.options, err = boxesOptions(&b)
	} else {
		r.Codes, r.CodesFile = nil, ""
		l.line, l.protocol = readerLine(&r), r.Protocol
		l.options, err = readerOptions(&r)
	}
	switch _, there := os.Lstat(l.file); {
	case err != nil:
		return err
	case !scanner.Coded(l.protocol) || l.line.Address == "":
		return fmt.Errorf("%s: protocol %s on device %q: there are no codes to learn", l.line.Name, l.protocol, l.line.Address)
	case mayRun(cfg.Control.Socket):
		return errors.New("shoed runs here and has the line: stop it first: sudo systemctl stop shoed")
	case !errors.Is(there, fs.ErrNotExist) && !l.force:
		return fmt.Errorf("%s is there: give another --out, or --force to replace it", l.file)
	}
	l.options.Learning = true
	l.decoder, err = scanner.New(l.protocol, l.options)
	return err
}

// run deals the deck to its end.
func (l *learning) run(ctx context.Context, stdin io.Reader) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	signals, closed := l.follow(ctx)
	defer func() { stop(); <-closed }()
	typed := make(chan string)
	go func() { // a read of standard input ends with the program
		for lines := bufio.NewScanner(stdin); lines.Scan(); {
			send(ctx, typed, strings.TrimSpace(lines.Text()))
		}
	}()
	for len(l.codes) < len(l.order) {
		var err error
		select {
		case s := <-signals:
			err = l.signal(&s)
		case word := <-typed:
			err = l.command(word)
		case <-ctx.Done():
			err = errStopped
		}
		if errors.Is(err, errStopped) {
			err = fmt.Errorf("stopped after %d of %d cards: they are kept in %s, and the same command goes on there", len(l.codes), len(l.order), l.part())
		}
		if err != nil {
			return err
		}
	}
	return l.finish()
}

// follow gives what happens on the line until ctx ends; closed says that the line
// is given up.
func (l *learning) follow(ctx context.Context) (signals <-chan device.Signal, closed <-chan struct{}) {
	queue := device.NewQueue(1<<20, device.QueueSignals)
	all, done := make(chan device.Signal), make(chan struct{})
	go func() {
		defer close(done)
		device.Follow(ctx, l.line, queue, nil)
	}()
	go func() {
		for {
			s, err := queue.Next(ctx)
			if err != nil {
				return
			}
			send(ctx, all, s)
		}
	}()
	return all, done
}

func send[T any](ctx context.Context, to chan<- T, v T) {
	select {
	case to <- v:
	case <-ctx.Done():
	}
}

// signal takes what happened on the line.
func (l *learning) signal(s *device.Signal) error {
	switch s.Kind {
	case device.Down:
		if !l.opened {
			return s.Cause
		}
		l.say("%v; waiting until it is back", s.Cause)
	case device.Up:
		l.decoder.Reconnect()
		if !l.opened {
			l.opened = true
			if err := l.resume(); err != nil {
				return err
			}
		}
		l.ask()
	case device.Lost:
		return fmt.Errorf("%s: %d bytes were lost: something sends without end", l.line.Name, s.LostBytes)
	case device.Received:
		for _, r := range l.decoder.Feed(s.At, s.Bytes, nil) {
			if err := l.reading(&r); err != nil || len(l.codes) == len(l.order) {
				return err
			}
		}
	}
	return nil
}

// reading takes a code, the next card's if it is new.
func (l *learning) reading(r *scanner.Reading) error {
	switch {
	case r.Err != nil:
		l.say("not read (%v)", r.Err.Reason)
		l.ask()
		return nil
	case r.Code == "": // a card lifted, or one whose refusal was told
		return nil
	}
	if i := slices.Index(l.codes, r.Code); i >= 0 {
		l.say("%s is the %v again", r.Code, l.order[i])
		l.ask()
		return nil
	}
	l.codes = append(l.codes, r.Code)
	if err := l.keep(); err != nil {
		return err
	}
	l.say("%s is the %v", r.Code, l.order[len(l.codes)-1])
	l.ask()
	return nil
}

// command does what was typed.
func (l *learning) command(word string) error {
	switch n := len(l.codes); {
	case word == "q":
		return errStopped
	case word == "u" && n > 0:
		l.say("taken back: %s, the %v", l.codes[n-1], l.order[n-1])
		l.codes = l.codes[:n-1]
		if err := l.keep(); err != nil {
			return err
		}
	case word == "u":
		l.say("there is no card to take back")
	default:
		l.say("type u to take the last card back, q to stop")
	}
	l.ask()
	return nil
}

func (l *learning) say(format string, a ...any) { fmt.Fprintf(l.out, format+"\n", a...) }

// ask says which card is next.
func (l *learning) ask() {
	if n := len(l.codes); n < len(l.order) {
		l.say("card %d of %d: %v", n+1, len(l.order), l.order[n])
	}
}

// part is the file in which the first codes are kept.
func (l *learning) part() string { return l.file + ".part" }

// text is what is learned so far, as scanner.ReadCodes takes it.
func (l *learning) text() []byte {
	b := fmt.Appendf(nil, "# learned by shoed from %s, protocol %s\n%s\n", l.line.Name, l.protocol, scanner.CodesHeader)
	for i, code := range l.codes {
		b = fmt.Appendf(b, "%s,%v\n", code, l.order[i])
	}
	return b
}

func (l *learning) keep() error { return writeWhole(l.part(), l.text(), 0o644, true) }

// resume goes on with what is kept. The line is ours by now, so nobody else writes it.
func (l *learning) resume() error {
	f, err := os.Open(l.part())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	other := false
	err = scanner.EachCode(f, func(code string, m scanner.Meaning) {
		n := len(l.codes)
		other = other || n == len(l.order) || l.order[n] != m
		l.codes = append(l.codes, code)
	})
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w; remove it to begin again", l.part(), err)
	case other:
		return fmt.Errorf("%s is of other cards: give the --order, --decks and --cut with which it was begun, or remove it", l.part())
	}
	l.say("going on after %d cards in %s", len(l.codes), l.part())
	return nil
}

// finish proves the table as a reader takes it, and makes the file.
func (l *learning) finish() error {
	codes, err := scanner.ReadCodes(strings.NewReader(string(l.text())))
	if err == nil {
		l.options.Codes, l.options.Learning = codes, false
		_, err = scanner.New(l.protocol, l.options)
	}
	if err == nil {
		err = writeWhole(l.file, l.text(), 0o644, l.force)
	}
	if err != nil {
		return fmt.Errorf("%w; what was learned is in %s", err, l.part())
	}
	l.say("learned %d codes: %s", len(l.codes), l.file)
	return os.Remove(l.part())
}
