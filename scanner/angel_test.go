package scanner

import (
	"bytes"
	"encoding/csv"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"shoed/round"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newDecoder(t testing.TB) *angel {
	t.Helper()
	d, err := New("angel", Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d.(*angel)
}

// read feeds a whole stream at one moment.
func read(t testing.TB, b []byte) []Reading {
	t.Helper()
	return newDecoder(t).Feed(start, b, nil)
}

// capture is the bytes of a capture.
func capture(t testing.TB, name string) []byte {
	t.Helper()
	var all []byte
	parseFile(t, filepath.Join("testdata/angel", name), func(_ int64, _ int, b []byte) error {
		all = append(all, b...)
		return nil
	})
	return all
}

func parseFile(t testing.TB, path string, fn func(int64, int, []byte) error) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := ParseCapture(f, fn); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func captures(t testing.TB) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/angel/*.hex")
	if err != nil || len(names) < 8 {
		t.Fatalf("captures: %v %v", names, err)
	}
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	return names
}

func card(t testing.TB, text string) round.Card {
	t.Helper()
	c, err := round.ParseCard(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every vector of the specification (angel.md, Vectors), both ways.
func TestAngelVectors(t *testing.T) {
	deal := func(to round.To, pos uint8, c string) round.Input {
		return round.Input{Kind: round.InCard, To: to, Pos: pos, Card: card(t, c)}
	}
	verdict := func(v round.Verdict) round.Input { return round.Input{Kind: round.InVerdict, Verdict: v} }
	fault := func(code uint8, on bool) round.Input {
		return round.Input{Kind: round.InFault, Code: code, On: on}
	}
	for _, v := range []struct {
		name, bytes string
		want        round.Input
		raw         bool // the shoe may say it in another way too
	}{
		{"D Player 1", "05 31 44 81 B8 03 34 46", deal(round.ToPlayer, 1, "8s"), false},
		{"D Banker 1", "05 32 44 91 CD 03 32 39", deal(round.ToBanker, 1, "Kh"), false},
		{"D Player 3", "05 35 44 83 A1 03 35 30", deal(round.ToPlayer, 3, "Ac"), false},
		{"D first card", "05 33 44 C1 97 03 32 32", deal(round.ToFirst, 0, "7d"), true},
		{"G Player, pair", "05 32 47 91 03 45 37", verdict(round.Verdict{Outcome: round.PlayerWins, PlayerPair: true}), false},
		{"G Banker", "05 37 47 C0 03 42 33", verdict(round.Verdict{Outcome: round.BankerWins}), false},
		{"G Tie, both pairs", "05 37 47 A3 03 44 30", verdict(round.Verdict{Outcome: round.Tie, PlayerPair: true, BankerPair: true}), false},
		{"G forced quit", "05 38 47 F0 03 38 43", verdict(round.Verdict{Quit: true}), false},
		{"C", "05 33 43 03 37 33", round.Input{Kind: round.InCut}, false},
		{"E overdraw", "05 34 45 C2 03 42 30", fault(2, true), true},
		{"E cannot read", "05 34 45 C1 03 42 33", fault(1, true), true},
		{"e overdraw", "05 35 65 82 03 44 31", fault(2, false), false},
		{"L locked", "05 35 4C 81 03 46 42", round.Input{Kind: round.InLock, On: true}, false},
		{"S", "05 31 53 03 36 31", round.Input{Kind: round.InReader, Reader: round.ReaderStart}, false},
		{"P", "05 32 50 03 36 31", round.Input{Kind: round.InReader, Reader: round.ReaderStandby}, false},
	} {
		b := unhex(t, v.bytes)
		v.want.At = start
		got := read(t, b)
		if len(got) != 1 || got[0].Err != nil || got[0].Input != v.want {
			t.Errorf("%s: read %v, want %v", v.name, says(got), says([]Reading{{Input: v.want}}))
		}
		if back := AppendAngel(nil, b[1], b[2], b[3:len(b)-3]...); !bytes.Equal(back, b) {
			t.Errorf("%s: appended % X, want % X", v.name, back, b)
		}
		back, err := AngelTelegram(b[1], v.want)
		if err != nil {
			t.Errorf("%s: %v", v.name, err)
		}
		if !v.raw && !bytes.Equal(back, b) {
			t.Errorf("%s: encoded % X, want % X", v.name, back, b)
		}
	}
}

func TestAngelCommands(t *testing.T) {
	for _, v := range []struct {
		command AngelCommand
		want    string // "" refuses
	}{
		{AngelCommand{Do: AngelLock}, "02 4F 50 4C 4B 30 32 03 31 42"}, // the public vector
		{AngelCommand{Do: AngelLock, BCCWithoutSTX: true}, "02 4F 50 4C 4B 30 32 03 31 39"},
		{AngelCommand{Do: AngelUnlock}, "02 4F 50 4C 4B 30 31 03 31 38"},
		{AngelCommand{Do: AngelCancelError, Error: 2}, "02 4F 50 45 43 30 32 03 31 41"},
		{AngelCommand{Do: AngelCancelError, Error: 99}, "02 4F 50 45 43 39 39 03 31 38"},
		{AngelCommand{Do: AngelConfirm}, "02 4F 50 47 50 30 30 03 30 39"},
		{AngelCommand{Do: AngelCancelError, Error: 100}, ""},
		{AngelCommand{Do: AngelLock, Error: 1}, ""},
		{AngelCommand{}, ""},
		{AngelCommand{Do: AngelConfirm + 1}, ""},
	} {
		got, err := v.command.Bytes()
		if (err != nil) != (v.want == "") || !bytes.Equal(got, unhex(t, v.want)) {
			t.Errorf("%+v: % X, %v; want %s", v.command, got, err, v.want)
		}
	}
}

// Whatever a telegram can say comes back as it was.
func TestAngelTelegramBack(t *testing.T) {
	var all []round.Input
	for i := range round.Faces + 1 {
		c := round.Masked
		if i < round.Faces {
			c = round.CardAt(i)
		}
		for to, most := range map[round.To]uint8{round.ToPlayer: 3, round.ToBanker: 3, round.ToFirst: 0, round.ToBurn: 10} {
			for pos := min(1, most); pos <= most; pos++ {
				all = append(all,
					round.Input{Kind: round.InCard, To: to, Pos: pos, Card: c},
					round.Input{Kind: round.InCard, To: to, Pos: pos, Card: c, Again: true})
				if c.Known() {
					all = append(all,
						round.Input{Kind: round.InShow, To: to, Pos: pos, Card: c},
						round.Input{Kind: round.InShow, To: to, Pos: pos, Card: c, Over: true})
				}
			}
		}
		for o := round.OutsideLock; o <= round.OutsideOverdraw; o++ {
			all = append(all, round.Input{Kind: round.InCard, Outside: o, Card: c})
		}
	}
	for i := range 4 {
		for _, o := range []round.Outcome{round.PlayerWins, round.BankerWins, round.Tie} {
			all = append(all, round.Input{Kind: round.InVerdict, Verdict: round.Verdict{Outcome: o, PlayerPair: i&1 != 0, BankerPair: i&2 != 0}})
		}
	}
	for code := range uint8(64) {
		all = append(all, round.Input{Kind: round.InFault, Code: code, On: true}, round.Input{Kind: round.InFault, Code: code})
	}
	all = append(all, round.Input{Kind: round.InLock}, round.Input{Kind: round.InSetting, On: true, Address: "01", Value: "23aZ"})

	for _, in := range all {
		in.At = start
		b, err := AngelTelegram('7', in)
		if err != nil {
			t.Fatal(err)
		}
		d := newDecoder(t)
		d.overdrawn = in.Outside == round.OutsideOverdraw
		got := d.Feed(start, b, nil)
		if len(got) != 1 || got[0].Err != nil || got[0].Input != in {
			t.Fatalf("% X: %v, want %+v", b, says(got), in)
		}
	}
}

func TestAngelTelegramRefuses(t *testing.T) {
	eight := card(t, "8s")
	for _, in := range []round.Input{
		{},
		{Kind: round.InTick},
		{Kind: round.InReader, Reader: round.ReaderGap},
		{Kind: round.InCard, To: round.ToPlayer, Pos: 4, Card: eight},
		{Kind: round.InCard, To: round.ToPlayer, Pos: 17, Card: eight},
		{Kind: round.InCard, To: round.ToBurn, Pos: 11, Card: eight},
		{Kind: round.InCard, To: 9, Pos: 1, Card: eight},
		{Kind: round.InCard, To: round.ToPlayer, Pos: 1},
		{Kind: round.InShow, To: round.ToPlayer, Pos: 1, Card: round.Masked},
		{Kind: round.InCard, To: round.ToPlayer, Pos: 1, Card: eight, Outside: round.OutsideLock},
		{Kind: round.InVerdict},
		{Kind: round.InVerdict, Verdict: round.Verdict{Quit: true, PlayerPair: true}},
		{Kind: round.InFault, Code: 64, On: true},
		{Kind: round.InFault, Code: 128},
		{Kind: round.InSetting, On: true, Address: "0", Value: "01234"},
		{Kind: round.InSetting, On: true, Address: "01", Value: "ab\x03d"},
	} {
		if b, err := AngelTelegram('1', in); err == nil {
			t.Errorf("%+v gave % X", in, b)
		}
	}
	if b, err := AngelTelegram('A', round.Input{Kind: round.InCut}); err == nil {
		t.Errorf("sequence A gave % X", b)
	}
}

// table is a table of testdata, with its header.
func table(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open("testdata/angel/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// The capture against what another program decoded: every row of the frames, in
// order, and nothing else but the noise.
func TestCaptureFrames(t *testing.T) {
	rows := table(t, "angel_eye_frames.csv")
	d, bad := newDecoder(t), 0
	var got []round.Input
	for _, r := range d.Feed(start, capture(t, "angel_eye_capture.hex"), nil) {
		if r.Err == nil {
			got = append(got, r.Input)
			continue
		}
		bad++
		if want := unhex(t, "ff ff ff ff c5 fc"); r.Err.Reason != Garbage || !bytes.Equal(r.Err.Bytes, want) {
			t.Errorf("refused %v", r.Err)
		}
	}
	rows = rows[1:]
	if len(got) != len(rows) || bad != 1 {
		t.Fatalf("%d inputs and %d refusals, want %d and 1", len(got), bad, len(rows))
	}
	overdrawn := false
	for i, row := range rows {
		telegram := AppendAngel(nil, row[1][0], row[2][0], unhex(t, row[4])...)
		want, why := decodeAngel(telegram, overdrawn)
		want.At = start
		if why != 0 || got[i] != want {
			t.Fatalf("row %v: %+v, want %+v, %v", row, got[i], want, why)
		}
		if text, has := rowText(want); has && text != row[5] {
			t.Errorf("row %v: decoded to %q", row, text)
		}
		overdrawn = row[2] == "E" && row[4] == "82" || overdrawn && row[2] != "e"
	}
	want := Stats{Frames: 627, Duplicates: 627 - uint64(len(rows)), GarbageBytes: 6}
	want.Refused[Garbage] = 1
	if s := d.Stats(); s != want {
		t.Errorf("stats %+v, want %+v", s, want)
	}
}

// rowText is the "decoded" column of a hand's card.
func rowText(in round.Input) (text string, has bool) {
	if in.To != round.ToPlayer && in.To != round.ToBanker {
		return "", false
	}
	face := "--"
	if in.Card.Known() {
		face = strings.ToUpper(in.Card.String())
	}
	return fmt.Sprintf("%c%d %s", "PB"[in.To-round.ToPlayer], in.Pos, face), true
}

// The capture against its rounds: cards, verdicts and pairs.
func TestCaptureRounds(t *testing.T) {
	rows := table(t, "angel_eye_rounds.csv")
	var want, got []string
	for _, r := range rows[1:] {
		want = append(want, strings.Join([]string{r[1], r[2], r[5], r[6]}, ","))
	}
	var hands [3][]string
	for _, r := range read(t, capture(t, "angel_eye_capture.hex")) {
		switch in := r.Input; {
		case in.Kind == round.InShow && !in.Over:
			hands[in.To] = append(hands[in.To], strings.ToUpper(in.Card.String()))
		case in.Kind == round.InVerdict:
			pairs := 0
			if in.Verdict.PlayerPair {
				pairs |= 1
			}
			if in.Verdict.BankerPair {
				pairs |= 2
			}
			got = append(got, fmt.Sprintf("%s,%s,%c,%d", strings.Join(hands[round.ToPlayer], " "),
				strings.Join(hands[round.ToBanker], " "), " PBT"[in.Verdict.Outcome], pairs))
			hands = [3][]string{}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("rounds\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Every capture gives the readings in its golden file.
func TestGolden(t *testing.T) {
	goldens(t, "angel", func(string) Decoder { return newDecoder(t) })
}

// goldens compares the readings of every capture in a protocol's folder with those
// in its golden file. What came after the line was opened again is in a file of
// its own.
func goldens(t *testing.T, folder string, decoder func(name string) Decoder) {
	names, err := filepath.Glob(filepath.Join("testdata", folder, "*.hex"))
	if err != nil || len(names) == 0 {
		t.Fatalf("captures: %v %v", names, err)
	}
	for _, path := range names {
		stem := strings.TrimSuffix(path, ".hex")
		if strings.HasSuffix(stem, ".after") {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			var text strings.Builder
			d := decoder(filepath.Base(stem))
			playCapture(t, path, d, &text)
			if _, err := os.Stat(stem + ".after.hex"); err == nil {
				text.WriteString("reconnect\n")
				d.Reconnect()
				playCapture(t, stem+".after.hex", d, &text)
			}
			s := d.Stats()
			fmt.Fprintf(&text, "frames %d, duplicates %d, anomalies %d, gaps %d, replies %d, garbage bytes %d\n",
				s.Frames, s.Duplicates, s.Anomalies, s.Gaps, s.Replies, s.GarbageBytes)
			if s.LostEdges+s.Bounces > 0 {
				fmt.Fprintf(&text, "lost edges %d, bounces %d\n", s.LostEdges, s.Bounces)
			}
			for _, r := range Reasons() {
				if n := s.Refused[r]; n > 0 {
					fmt.Fprintf(&text, "%v %d\n", r, n)
				}
			}
			golden(t, stem+".golden", text.String())
		})
	}
}

func playCapture(t *testing.T, path string, d Decoder, text io.Writer) {
	t.Helper()
	parseFile(t, path, func(ms int64, line int, b []byte) error {
		at := start.Add(time.Duration(max(ms, 0)) * time.Millisecond)
		for _, r := range d.Feed(at, b, nil) {
			if r.Err == nil && !r.Input.At.Equal(at) {
				t.Errorf("line %d: at %v, want %v", line, r.Input.At, at)
			}
			fmt.Fprintf(text, "%4d %s\n", line, say(r))
		}
		return nil
	})
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got\n%s", path, got)
	}
}

func says(rs []Reading) []string {
	var all []string
	for _, r := range rs {
		all = append(all, say(r))
	}
	return all
}

// say is a reading as a golden line.
func say(r Reading) string {
	if r.Err != nil {
		return fmt.Sprintf("refused %v at %d: % x", r.Err.Reason, r.Err.Offset, r.Err.Bytes)
	}
	in := r.Input
	place := fmt.Sprintf("%s %d %v", [...]string{"", "player", "banker", "first", "burn"}[in.To], in.Pos, in.Card)
	switch in.Kind {
	case round.InReader:
		return [...]string{"", "start", "standby", "gap"}[in.Reader]
	case round.InCard:
		switch {
		case in.Outside != 0:
			return fmt.Sprintf("outside %s %v", [...]string{"", "lock", "error", "setting", "overdraw"}[in.Outside], in.Card)
		case in.Again:
			return "again " + place
		}
		return "card " + place
	case round.InShow:
		if in.Over {
			return "show over " + place
		}
		return "show " + place
	case round.InCut:
		return "cut"
	case round.InVerdict:
		v := in.Verdict
		return fmt.Sprintf("verdict %s, pairs %t %t, quit %t", [...]string{"none", "player", "banker", "tie"}[v.Outcome], v.PlayerPair, v.BankerPair, v.Quit)
	case round.InFault:
		return fmt.Sprintf("fault %d %t", in.Code, in.On)
	case round.InLock:
		return fmt.Sprintf("lock %t", in.On)
	case round.InSetting:
		if in.Address == "" {
			return fmt.Sprintf("setting mode %t", in.On)
		}
		return fmt.Sprintf("setting %q %q", in.Address, in.Value)
	case round.InUnread:
		return strings.TrimSpace(fmt.Sprintf("unread, %s %s", in.Name, r.Code))
	case round.InPlaced, round.InLifted:
		return laid(r)
	case round.InButton:
		return "button " + in.Button.String()
	case round.InBets:
		return fmt.Sprintf("bets open %t", in.Open)
	case round.InInsurance:
		return [...]string{"", "open", "close", "post"}[in.Insurance.Do] + " insurance"
	case round.InWire:
		return fmt.Sprintf("wire %s %s", in.Line, [...]string{"", "stuck", "bouncing", "ok"}[in.Wire])
	}
	return fmt.Sprintf("%+v", in)
}
