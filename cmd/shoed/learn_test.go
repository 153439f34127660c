package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"shoed/round"
	"shoed/scanner"
)

// learner is a shoed learn at work, for a table's line.
type learner struct {
	*table
	args   []string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	out    *lockedBuffer
	seen   int // of out
	exited chan error
}

const codedReader = `[reader]
protocol = "generic"
payload_bytes = 4
checksum = "crc16_modbus"
checksum_form = "hex"`

// newLearner is one for a table whose line is there; nothing runs yet.
func newLearner(t *testing.T, section string, args ...string) *learner {
	t.Helper()
	tb := newTable(t, "")
	if section != "" {
		replaceIn(t, tb.config, "[reader]", section)
	}
	tb.plug()
	l := &learner{table: tb}
	l.args = append([]string{"learn", "--config", tb.config, "--out", l.file()}, args...)
	return l
}

func (l *learner) file() string { return filepath.Join(l.dir, "codes.csv") }

func (l *learner) start() {
	l.t.Helper()
	l.cmd = exec.Command(os.Args[0], l.args...)
	l.out, l.seen, l.exited = new(lockedBuffer), 0, make(chan error, 1)
	l.cmd.Env, l.cmd.Stdout, l.cmd.Stderr = append(os.Environ(), asProgram+"=1"), l.out, l.out
	var err error
	if l.stdin, err = l.cmd.StdinPipe(); err == nil {
		err = l.cmd.Start()
	}
	if err != nil {
		l.t.Fatal(err)
	}
	cmd, exited := l.cmd, l.exited
	go func() { exited <- cmd.Wait() }()
	l.t.Cleanup(func() { cmd.Process.Kill() })
}

// says waits for a line that was not seen before.
func (l *learner) says(line string) {
	l.t.Helper()
	want := line + "\n"
	eventually(l.t, line, func() bool { return strings.Contains(l.out.String()[l.seen:], want) })
	l.seen += strings.Index(l.out.String()[l.seen:], want) + len(want)
}

func (l *learner) types(line string) {
	l.t.Helper()
	if _, err := io.WriteString(l.stdin, line+"\n"); err != nil {
		l.t.Fatal(err)
	}
}

// ends waits for the end and what is said last.
func (l *learner) ends(code int, last string) {
	l.t.Helper()
	eventually(l.t, "the end", func() bool { return len(l.exited) > 0 })
	<-l.exited
	if got := l.cmd.ProcessState.ExitCode(); got != code || !strings.Contains(l.out.String()[l.seen:], last) {
		l.t.Fatalf("exit code %d, want %d and %q:\n%s", got, code, last, l.out)
	}
}

// deal sends the frame of a code, and waits for what is said of it.
func (l *learner) deal(code, said string) {
	l.t.Helper()
	l.send(coded(code))
	l.says(fmt.Sprintf("%X %s", code, said))
}

// coded is the frame of four characters with its checksum.
func coded(code string) []byte {
	crc := uint16(0xffff)
	for _, c := range []byte(code) {
		crc ^= uint16(c)
		for range 8 {
			crc = crc>>1 ^ 0xa001*(crc&1)
		}
	}
	return fmt.Appendf(nil, "%s%02X%02X\r\n", code, crc&0xff, crc>>8)
}

// codeAt is the code of the card that is dealt as number i.
func codeAt(i int) string { return fmt.Sprintf("%04d", 3*i+7) }

// rest deals from card i to the last.
func (l *learner) rest(i int) {
	l.t.Helper()
	for ; i < round.Faces; i++ {
		l.deal(codeAt(i), fmt.Sprintf("is the %v", round.CardAt(i)))
	}
}

// learned checks the finished file.
func (l *learner) learned(codes int) {
	l.t.Helper()
	cfg, err := loadConfig(l.config)
	if err != nil {
		l.t.Fatal(err)
	}
	cfg.Reader.CodesFile = l.file()
	o, err := readerOptions(&cfg.Reader)
	if err != nil {
		l.t.Fatal(err)
	}
	d, err := scanner.New("generic", o)
	if err != nil {
		l.t.Fatal(err)
	}
	for i := range round.Faces {
		got := d.Feed(captureStart, coded(codeAt(i)), nil)
		if len(got) != 1 || got[0].Input.Card != round.CardAt(i) {
			l.t.Errorf("%s means %+v, want %v", codeAt(i), got, round.CardAt(i))
		}
	}
	if len(o.Codes) != codes {
		l.t.Errorf("%d codes, want %d", len(o.Codes), codes)
	}
	if _, err := os.Stat(l.file() + ".part"); !os.IsNotExist(err) {
		l.t.Errorf("the part is still there: %v", err)
	}
	if st, err := os.Stat(l.file()); err != nil || st.Mode() != 0o644 {
		l.t.Errorf("%v, %v: shoed's user could not read it", st, err)
	}
}

// A whole deck and the cut card, with everything that goes wrong on the way.
func TestLearn(t *testing.T) {
	l := newLearner(t, codedReader, "--cut")
	l.start()
	l.says("card 1 of 53: As")
	l.deal(codeAt(0), "is the As")
	l.says("card 2 of 53: 2s")

	l.deal(codeAt(0), "is the As again")
	l.says("card 2 of 53: 2s")
	bad := coded(codeAt(1))
	bad[2] ^= 1
	l.send(bad)
	l.says("not read (bad_checksum)")
	l.says("card 2 of 53: 2s")
	l.send([]byte("noise\r\n"))
	l.says("not read (bad_length)")
	l.deal(codeAt(1), "is the 2s")

	l.deal("9999", "is the 3s") // another card than the one asked for
	l.says("card 4 of 53: 4s")
	l.types("u")
	l.says("taken back: 39393939, the 3s")
	l.says("card 3 of 53: 3s")
	l.types("what")
	l.says("type u to take the last card back, q to stop")
	l.rest(2)
	l.says("card 53 of 53: cut")
	l.deal("CUT!", "is the cut")
	l.ends(0, "learned 53 codes: "+l.file())
	l.learned(53)

	l.start()
	l.ends(1, l.file()+" is there: give another --out, or --force to replace it")
	l.args = append(l.args, "--force")
	l.start()
	l.says("card 1 of 53: As")
	l.rest(0)
	l.deal("cut?", "is the cut")
	l.ends(0, "learned")
	l.learned(53)
}

// The line is unplugged in the middle, within a frame, and comes back.
func TestLearnUnplugged(t *testing.T) {
	l := newLearner(t, codedReader)
	l.start()
	l.stdin.Close() // nobody is there to type
	l.says("card 1 of 52: As")
	for i := range 20 {
		l.deal(codeAt(i), fmt.Sprintf("is the %v", round.CardAt(i)))
	}
	l.says("card 21 of 52: 8h")
	l.send(coded(codeAt(20))[:3])
	l.unplug()
	eventually(t, "that it is gone", func() bool { return strings.Contains(l.out.String(), "; waiting until it is back") })
	l.plug()
	l.says("card 21 of 52: 8h")
	l.rest(20) // what was read of the torn frame, if it was, is refused
	l.ends(0, "learned 52 codes")
	l.learned(52)
}

// Killed in the middle, and stopped in every way: nothing that was learned is lost.
func TestLearnGoesOn(t *testing.T) {
	l := newLearner(t, codedReader)
	l.start()
	l.says("card 1 of 52: As")
	l.types("u")
	l.says("there is no card to take back")
	for i := range 10 {
		l.deal(codeAt(i), fmt.Sprintf("is the %v", round.CardAt(i)))
	}
	l.cmd.Process.Kill()
	l.ends(-1, "")

	l.start()
	l.says("going on after 10 cards in " + l.file() + ".part")
	l.says("card 11 of 52: Js")
	l.deal(codeAt(3), "is the 4s again")
	l.types("u")
	l.says(fmt.Sprintf("taken back: %X, the Ts", codeAt(9)))
	l.types("q")
	l.ends(1, "stopped after 9 of 52 cards: they are kept in "+l.file()+".part, and the same command goes on there")

	l.start()
	l.says("card 10 of 52: Ts")
	l.cmd.Process.Signal(os.Interrupt)
	l.ends(1, "stopped after 9 of 52 cards")

	begun := l.args
	order := filepath.Join(l.dir, "order")
	if err := os.WriteFile(order, []byte(deckText(func(i int) int { return round.Faces - 1 - i })), 0o600); err != nil {
		t.Fatal(err)
	}
	l.args = append(l.args[:len(l.args):len(l.args)], "--order", order)
	l.start()
	l.ends(1, ".part is of other cards: give the --order, --decks and --cut with which it was begun, or remove it")
	l.args = begun
	whole, err := os.ReadFile(l.file() + ".part")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.file()+".part", bytes.Replace(whole, []byte(",As"), []byte(",1s"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	l.start()
	l.ends(1, `.part: line 3: "1s" is no card`)
	if err := os.WriteFile(l.file()+".part", whole, 0o644); err != nil {
		t.Fatal(err)
	}

	l.start()
	l.says("card 10 of 52: Ts")
	l.rest(9)
	l.ends(0, "learned 52 codes")
	l.learned(52)
}

// deckText is a deck as an --order has it.
func deckText(at func(i int) int) string {
	text := "# spades last\n"
	for i := range round.Faces {
		text += round.CardAt(at(i)).String() + map[bool]string{true: "\n", false: " "}[i%13 == 12]
	}
	return text
}

// Two decks of tagged cards, put into the boxes in an order of their own.
func TestLearnBoxes(t *testing.T) {
	l := newLearner(t, "", "--boxes", "--decks", "2")
	order := filepath.Join(l.dir, "order")
	if err := os.WriteFile(order, []byte(deckText(func(i int) int { return round.Faces - 1 - i })), 0o600); err != nil {
		t.Fatal(err)
	}
	l.args = append(l.args, "--order", order)
	replaceIn(t, l.config, "[journal]", fmt.Sprintf("[boxes]\nprotocol = \"rfid\"\ndevice = %q\ncodes_file = %q\n[journal]", l.port(), l.file()))
	l.start()
	l.says("card 1 of 104: Kc")
	for i := range 2 * round.Faces {
		uid := fmt.Sprintf("04A2B3%02X", i)
		l.send(fmt.Appendf(nil, "P1 %s\r\nP1 %s\r\n", uid, uid))
		l.says(fmt.Sprintf("%s is the %v", uid, round.CardAt(round.Faces-1-i%round.Faces)))
		if i == 60 { // lifted and put down again
			l.send(fmt.Appendf(nil, "P1 -\r\nB2 %s\r\nB2 -\r\n", uid))
			l.says(uid + " is the 5c again")
		}
	}
	l.ends(0, "learned 104 codes")
	cfg, err := loadConfig(l.config)
	if err != nil {
		t.Fatal(err)
	}
	o, err := boxesOptions(&cfg.Boxes)
	if err != nil || len(o.Codes) != 104 {
		t.Fatalf("%d codes, %v", len(o.Codes), err)
	}
	if _, err := scanner.New("rfid", o); err != nil {
		t.Error(err)
	}
}

func TestLearnRefuses(t *testing.T) {
	l := newLearner(t, codedReader)
	refused := func(code int, want string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		err := run(t.Context(), append([]string{"learn", "--config", l.config}, args...), strings.NewReader(""), &out, &errs)
		if err == nil || !strings.Contains(err.Error(), want) || report(err, &errs) != code {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
	out := []string{"--out", l.file()}
	with := func(more ...string) []string { return append(out[:2:2], more...) }
	refused(2, "needed are --out and 1 to 12 --decks")
	refused(2, "needed are --out and 1 to 12 --decks", with("--decks", "0")...)
	refused(2, "needed are --out and 1 to 12 --decks", with("--decks", "13")...)
	refused(2, "unknown command", with("more")...)
	order := filepath.Join(l.dir, "order")
	for text, want := range map[string]string{
		"As 2s":          "2 cards instead of 52",
		"As 2s # 3s\n2s": "2s is there twice",
		"As ??":          "?? is there twice, or is no card",
		"As 1s":          `card "1s" is not a rank`,
	} {
		if err := os.WriteFile(order, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(1, want, with("--order", order)...)
	}
	refused(1, "no such file", with("--order", order+"?")...)
	refused(1, `boxes: protocol presence on device "": there are no codes to learn`, with("--boxes")...)

	socket, err := net.Listen("unix", l.socket())
	if err != nil {
		t.Fatal(err)
	}
	refused(1, "shoed runs here and has the line: stop it first", out...)
	socket.Close()
	l.start()
	l.says("card 1 of 52: As")
	refused(1, "in use", out...)
	l.types("q")
	l.ends(1, "stopped after 0 of 52 cards")

	l.unplug()
	refused(1, "no such device", out...)
	replaceIn(t, l.config, "payload_bytes = 4", "payload_bytes = 0")
	refused(1, "payload_bytes 0: write at least 1", out...)
	replaceIn(t, l.config, codedReader[9:29], `protocol = "angel"`)
	refused(1, `reader: protocol angel on device`, out...)
}

// What was learned decodes a capture, of the reader and of the boxes.
func TestDecodeWithConfig(t *testing.T) {
	l := newLearner(t, "")
	var table bytes.Buffer
	fmt.Fprintln(&table, scanner.CodesHeader)
	for i := range round.Faces {
		fmt.Fprintf(&table, "'%s',%v\n", codeAt(i), round.CardAt(i))
	}
	if err := os.WriteFile(l.file(), table.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	replaceIn(t, l.config, "[reader]", fmt.Sprintf("%s\ncodes_file = %q", codedReader, l.file()))
	replaceIn(t, l.config, "[journal]", fmt.Sprintf("[boxes]\nprotocol = \"rfid\"\ndevice = %q\ncodes_file = %q\n[journal]", l.port(), l.file()))
	capture := filepath.Join(l.dir, "capture.hex")
	for _, c := range []struct {
		bytes, want string
		args        []string
	}{
		{string(coded(codeAt(3))), `"in":"card","card":"4s"}`, nil},
		{"P1 " + fmt.Sprintf("%X", codeAt(3)) + "\n", `"in":"placed","card":"4s","box":"P1"}`, []string{"--device", "boxes"}},
	} {
		if err := os.WriteFile(capture, fmt.Appendf(nil, "%x\n", c.bytes), 0o600); err != nil {
			t.Fatal(err)
		}
		out, _, err := shoedCommand(append([]string{"decode", "--config", l.config, capture}, c.args...)...)
		if err != nil || !strings.HasSuffix(strings.TrimSpace(out), c.want) {
			t.Errorf("%q: %q, %v; want %s", c.bytes, out, err, c.want)
		}
	}
	if _, _, err := shoedCommand("decode", "--config", l.config, "--device", "panel", capture); err == nil || !strings.HasSuffix(err.Error(), `has no device "panel"`) {
		t.Error(err)
	}
}
