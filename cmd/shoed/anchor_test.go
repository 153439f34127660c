package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"shoed/config"
	"shoed/journal"
	"shoed/mqtt"
	"shoed/round"
	"shoed/scanner"
)

// published plays the captured rounds at a table and gives its journal and what a
// subscriber elsewhere kept, a line each as mosquitto_sub -v prints it.
func published(t *testing.T) (file string, kept []string) {
	t.Helper()
	broker := startMosquitto(t)
	out := &lockedBuffer{}
	ctx, cancel := context.WithCancel(context.Background())
	ended, err := mqtt.Subscribe(ctx, mqtt.Account{Server: broker.url()}, "test", "t1", func(topic string, _ bool, payload []byte) {
		fmt.Fprintf(out, "%s %s\n", topic, payload)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); <-ended })
	tb := newTable(t, broker.url(), strings.Split(captureRules, ",")...)
	tb.plug()
	tb.running()
	f, err := os.Open(filepath.Join(angelData, "angel_eye_capture.hex"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	if err := scanner.ParseCapture(f, func(_ int64, _ int, b []byte) error { n += len(b); tb.send(b); return nil }); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the capture's last byte in the journal", func() bool { return tb.taken() == n })
	if err := tb.stop(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "status stopped", func() bool { return strings.Contains(out.String(), `"state":"stopped"`) })
	return tb.file(), strings.SplitAfter(strings.TrimSpace(out.String())+"\n", "\n")
}

// rebuilt makes the journal anew as someone with root can: the same records but
// for what change does, with the same epoch and secret, and the chain computed
// anew by the journal's own code.
func rebuilt(t *testing.T, file string, change func([]journal.Record) []journal.Record) string {
	t.Helper()
	r, err := journal.OpenRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var records []journal.Record
	if err := r.Read(1, func(rec journal.Record) error { records = append(records, rec); return nil }); err != nil {
		t.Fatal(err)
	}
	forged := filepath.Join(t.TempDir(), journalFile)
	open := func() *journal.Journal {
		j, _, err := journal.Open(forged, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	open().Close()
	db, err := sql.Open("sqlite", forged)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(`ATTACH ? AS old; REPLACE INTO meta SELECT * FROM old.meta WHERE name IN ('epoch', 'blind', 'anchor')`, file)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	j := open()
	if err := j.Append(change(records)); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return forged
}

// TestAnchors: a journal that was rebuilt by someone with root holds together,
// and is found with the messages that others have of it; of these, altered ones
// are found too.
func TestAnchors(t *testing.T) {
	file, kept := published(t)
	dir := t.TempDir()
	write := func(name string, lines []string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// The last line with a chain, and the key.
	last, key := 0, ""
	for i, line := range kept {
		if strings.Contains(line, `"chain"`) {
			last = i
		}
		if m := regexp.MustCompile(`"public_key":"([^"]+)"`).FindStringSubmatch(line); m != nil {
			key = m[1]
		}
	}
	all := write("all", kept)
	with := func(old, now string) []string {
		lines := append([]string(nil), kept...)
		if lines[last] = strings.Replace(lines[last], old, now, 1); lines[last] == kept[last] {
			t.Fatalf("no %s in %s", old, kept[last])
		}
		return lines
	}
	var received mqtt.Event
	if err := json.Unmarshal([]byte(kept[last][strings.IndexByte(kept[last], '{'):]), &received); err != nil {
		t.Fatal(err)
	}
	bare := func(lines []string) (events []string) { // the JSON alone, without info
		for _, line := range lines {
			if topic, payload, _ := strings.Cut(line, " "); strings.HasSuffix(topic, "/event") {
				events = append(events, payload)
			}
		}
		return events
	}
	events := write("events", bare(kept))
	otherKey := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, ed25519.PublicKeySize))
	same := func(r []journal.Record) []journal.Record { return r }
	changed := rebuilt(t, file, func(r []journal.Record) []journal.Record {
		for i := range r {
			if r[i].Kind == journal.Chunk { // an early one: everything after it is computed anew
				r[i].Body[0] ^= 1
				break
			}
		}
		return r
	})
	cut := rebuilt(t, file, func(r []journal.Record) []journal.Record {
		for i := range r {
			if r[i].Seq == received.Seq {
				return r[:i]
			}
		}
		return nil
	})
	fresh := newTable(t, "")
	fresh.running()
	if err := fresh.stop(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		journal string
		anchors string
		more    []string // flags
		want    string   // in the output or the error
		bad     bool
	}{
		{"as received", file, all, nil, "the journal is the one published, up to event", false},
		{"the key's origin is said", file, all, nil, "one noted elsewhere (--key) proves more", false},
		{"key given", file, events, []string{"--key", key}, "17 anchors, 0 of them at events pruned", false},
		{"key in a file", file, events, []string{"--key", write("key", []string{key, "\n"})}, "from --key", false},
		{"copied record by record", rebuilt(t, file, same), all, nil, "the journal is the one published", false},
		{"one byte changed", changed, all, nil, "that or an earlier record was rebuilt", true},
		{"end cut", cut, all, nil, fmt.Sprintf("event %d is known to have been there", received.Seq), true},
		{"another journal", fresh.file(), all, nil, "another table's, or was begun anew", true},
		{"no key", file, events, nil, "name the key with --key", true},
		{"another key", file, events, []string{"--key", otherKey}, "the signature is wrong: this line was altered, or it is not", true},
		{"key of nothing", file, events, []string{"--key", "nothing"}, "--key: neither", true},
		{"key alone", file, "", []string{"--key", key}, "--key goes with --anchor", true},
		{"short key", file, events, []string{"--key", write("short", []string{"AAAA"})}, "32 bytes in base64", true},
		{"two keys", file, write("keys", append(kept[:len(kept):len(kept)], `{"public_key":"`+otherKey+`"}`)), nil, "another one than in line", true},
		{"head altered", file, write("head", with(received.Chain.Head[:4], "beef")), nil, fmt.Sprintf("head:%d: the signature is wrong", last+1), true},
		{"seq altered", file, write("seq", with(`"chain":{"seq":`, `"chain":{"seq":1`)), nil, fmt.Sprintf("seq:%d: the signature is wrong", last+1), true},
		{"chain unreadable", file, write("unreadable", with(`"chain":{"seq":`, `"chain":{"seq":"x`)), nil, fmt.Sprintf("unreadable:%d: an anchor that cannot be read", last+1), true},
		{"two tables", file, write("tables", with(`"table":"t1"`, `"table":"t2"`)), nil, "keep those of one table", true},
		{"no anchors", file, write("none", []string{"shoed/x {}\n", "noise\n", "\n"}), nil, "no anchor in 3 lines", true},
		{"no file", file, filepath.Join(dir, "absent"), nil, "absent", true},
	} {
		words := append([]string{"journal", "verify", c.journal}, c.more...)
		if c.anchors != "" {
			words = append(words, "--anchor", c.anchors)
		}
		out, _, err := shoedCommand(words...)
		if (err != nil) != c.bad || !strings.Contains(out+fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v\n%swant %q", c.name, err, out, c.want)
		}
		if c.more == nil {
			if _, _, err := shoedCommand("journal", "verify", c.journal); err != nil {
				t.Errorf("%s: without anchors: %v", c.name, err)
			}
		}
	}
}

// TestPrunedAnchors: an anchor at an event that was dropped proves nothing.
func TestPrunedAnchors(t *testing.T) {
	file, kept := published(t)
	j, _, err := journal.Open(file, journal.Options{MaxBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append([]journal.Record{{At: time.Now(), Kind: journal.Snapshot}}); err != nil {
		t.Fatal(err)
	}
	if p, err := j.Prune(); err != nil || p.Records == 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	all := filepath.Join(t.TempDir(), "all")
	if err := os.WriteFile(all, []byte(strings.Join(kept, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := shoedCommand("journal", "verify", file, "--anchor", all)
	if err == nil || !strings.Contains(err.Error(), "nothing is proven") || !strings.Contains(out, "17 anchors, 17 of them at events pruned") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestChainTellsNoFaces: two tables whose burned cards differ, so that only one
// calls surveillance (shoe.suspect_order), publish the same, game.md section 4,
// but for the chain's heads and their signatures. Its seq is the event's and not
// the record's number, which does differ.
func TestChainTellsNoFaces(t *testing.T) {
	var told, numbers [2]string
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	for i, burned := range []string{"2s2h", "2s9h"} {
		j, _, err := journal.Open(filepath.Join(t.TempDir(), journalFile), journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		rules := round.DefaultRules()
		if err := setRules(&rules, []string{"burn=fixed:12", "reveal=on_signal", "round_start=first_card"}); err != nil {
			t.Fatal(err)
		}
		c := &core{journal: j, state: round.New(rules), log: slog.New(slog.DiscardHandler), adopted: func() {}, clock: func(t time.Time) time.Time { return t }}
		c.sources, err = openSources(&config.Config{Reader: config.Reader{Name: "reader", Protocol: "angel"}}, scanner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		at := time.Date(2026, 3, 1, 20, 0, 0, 0, time.UTC)
		take := func(in round.Input) {
			at = at.Add(time.Second)
			in.At = at
			if err := c.take(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		face := func(text string) round.Card {
			f, err := round.ParseCard(text)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		take(round.Input{Kind: round.InShoe})
		for n := range 12 {
			take(round.Input{Kind: round.InCard, Card: face(burned[n%2*2 : n%2*2+2])})
		}
		for _, f := range []string{"Kh", "9d", "Qc", "Ts"} {
			take(round.Input{Kind: round.InCard, Card: face(f)})
		}
		for _, box := range []round.Box{round.P1, round.B1, round.P2, round.B2} {
			take(round.Input{Kind: round.InReveal, Box: box})
		}
		s := &service{cfg: new(config.Config), core: c, journal: j}
		records, err := s.outbox().Events(0, 100)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := j.Events(0, 100)
		if err != nil || len(stored) != len(records) {
			t.Fatalf("%d events in the journal, %d in memory: %v", len(stored), len(records), err)
		}
		for n, r := range records {
			if r.Head != stored[n].Head {
				t.Errorf("event %d: head %x in memory, %x in the journal", r.Seq, r.Head, stored[n].Head)
			}
			e, err := mqtt.EventOf(mqtt.Envelope{Site: "s", Table: "t", Epoch: "e", Seq: r.Seq}, r, key)
			if err != nil {
				t.Fatal(err)
			}
			body, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			told[i] += string(body) + "\n"
			numbers[i] += fmt.Sprint(stored[n].No, " ")
		}
	}
	blinded := regexp.MustCompile(`"head":"[0-9a-f]{64}","signature":"[^"]{88}"`)
	if a, b := blinded.ReplaceAllString(told[0], ""), blinded.ReplaceAllString(told[1], ""); a != b {
		t.Errorf("unseen faces are told:\n%s\n%s", a, b)
	}
	if !blinded.MatchString(told[0]) || told[0] == told[1] {
		t.Errorf("no chain was published:\n%s", told[0])
	}
	if numbers[0] == numbers[1] {
		t.Errorf("the records' numbers do not differ (%s): of them nothing is tested", numbers[0])
	}
}
