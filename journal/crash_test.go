package journal

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// child starts the test binary as the named child on path.
func child(name, path string) *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "SHOED_JOURNAL_CHILD="+name, "SHOED_JOURNAL_PATH="+path)
	return c
}

// appendForever appends until it is killed and prints the end of each append that was acknowledged, the head at each
// event in it, and each count.
func appendForever(path string) error {
	j, _, err := Open(path, Options{MaxBytes: 200 << 10})
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		records := batch(j, 1+rand.IntN(6))
		if err := j.Append(records); err != nil {
			return err
		}
		for _, r := range records {
			if r.Seq != 0 {
				fmt.Printf("head %d %x\n", r.Seq, r.Head)
			}
		}
		fmt.Printf("end %d\n", records[len(records)-1].No)
		if err := j.Deliver(j.LastSeq()); err != nil {
			return err
		}
		switch rand.IntN(12) {
		case 0:
			count, err := j.Count("session")
			if err != nil {
				return err
			}
			fmt.Printf("count %d\n", count)
		case 1:
			err = j.Flush()
		case 2:
			_, err = j.Prune()
		}
		if err != nil {
			return err
		}
	}
}

// told is what a child printed before it died.
type told struct {
	ends  []uint64
	heads []Head
	count uint64
}

// killOne runs appendForever on path and kills it at a random time after its first acknowledgement.
func killOne(t *testing.T, path string, random *rand.Rand) told {
	t.Helper()
	c := child("append", path)
	var complaints strings.Builder
	c.Stderr = &complaints
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var got told
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break // a line cut short was not acknowledged
		}
		if err != nil {
			t.Fatal(err)
		}
		if got.ends == nil {
			time.AfterFunc(time.Duration(random.IntN(30_000))*time.Microsecond, func() { c.Process.Kill() })
		}
		got.hear(t, line)
	}
	if err := c.Wait(); err == nil || c.ProcessState.Exited() {
		t.Fatalf("the child was not killed: %v %s", err, complaints.String())
	}
	return got
}

func (g *told) hear(t *testing.T, line string) {
	t.Helper()
	var end uint64
	var h Head
	var hash []byte
	if _, err := fmt.Sscanf(line, "count %d", &g.count); err == nil {
		return
	}
	if _, err := fmt.Sscanf(line, "end %d", &end); err == nil {
		g.ends = append(g.ends, end)
		return
	}
	if _, err := fmt.Sscanf(line, "head %d %x", &h.Seq, &hash); err != nil || len(hash) != len(h.Hash) {
		t.Fatalf("the child said %q: %v", line, err)
	}
	copy(h.Hash[:], hash)
	g.heads = append(g.heads, h)
}

// However the process dies, what it had acknowledged is there, in order and unchanged, and the next one goes on.
func TestKill(t *testing.T) {
	const least = 50 // kills; more where a busy machine appends little before each
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	path := journalPath(t)
	appends, pruned, unacknowledged := 0, uint64(0), uint64(0)
	kill := 0
	for ; kill < least || pruned == 0 && kill < 10*least; kill++ {
		got := killOne(t, path, random)
		appends += len(got.ends)
		last := got.ends[len(got.ends)-1]
		j, o, err := Open(path, Options{})
		if err != nil {
			t.Fatalf("kill %d: %v", kill, err)
		}
		no, _ := j.end()
		// One batch of six, or the note of a pruning, may have been on its way; the repair is noted by Open.
		if no < last || no > last+6+1+runsPerPrune {
			t.Fatalf("kill %d: acknowledged %d, found %d", kill, last, no)
		}
		unacknowledged += no - last
		if o.Clean {
			t.Errorf("kill %d: found clean", kill)
		}
		mustVerify(t, path, got.heads...)
		pruned = o.Pruned
		compare(t, j)
		if count, err := j.Count("session"); err != nil || count <= got.count {
			t.Errorf("kill %d: count %d after %d: %v", kill, count, got.count, err)
		}
		if kill%2 == 0 {
			mustClose(t, j)
		} else {
			j.abandon()
		}
	}
	t.Logf("%d kills, %d appends acknowledged, %d records found that were not, %d records pruned", kill, appends, unacknowledged, pruned)
	if pruned == 0 {
		t.Error("nothing was pruned: the test is too short to mean much")
	}
}

// compare checks every record against how it was made.
func compare(t *testing.T, j *Journal) {
	t.Helper()
	seq := uint64(0)
	for _, r := range readAll(t, j, 0) {
		if r.Kind == Note {
			continue
		}
		if r.Seq != 0 {
			if seq != 0 && r.Seq != seq+1 {
				t.Fatalf("event %d follows %d", r.Seq, seq)
			}
			seq = r.Seq
		}
		if !same(r, made(r.No, r.Seq)) {
			t.Fatalf("got %+v, want %+v", r, made(r.No, r.Seq))
		}
	}
	if seq != 0 && seq != j.LastSeq() {
		t.Fatalf("the last event is %d, the journal says %d", seq, j.LastSeq())
	}
}

func TestToldParsesItself(t *testing.T) {
	var g told
	hash := strings.Repeat("ab", 32)
	g.hear(t, "head 12 "+hash+"\n")
	g.hear(t, "end 40\n")
	g.hear(t, "count 4\n")
	if len(g.ends) != 1 || g.ends[0] != 40 || len(g.heads) != 1 || g.heads[0].Seq != 12 || hex.EncodeToString(g.heads[0].Hash[:]) != hash || g.count != 4 {
		t.Errorf("%+v", g)
	}
}
