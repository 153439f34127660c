package odds

import (
	"fmt"
	"strings"
	"testing"

	"shoed/round"
)

func TestFullShoe(t *testing.T) {
	for decks := 1; decks <= round.MaxDecks; decks++ {
		c := fullShoe(t, decks)
		want := Values{}
		for v := range want {
			want[v] = uint16(4 * decks)
		}
		want[0] *= 4
		if c.Cards() != 52*decks || c.Values() != want || !c.Faced() {
			t.Errorf("%d decks: %d cards, %v", decks, c.Cards(), c.Values())
		}
	}
}

func TestUnseen(t *testing.T) {
	var shown [round.Faces]uint8
	cards := cardsOf(t, "8s 8s Th Kd Ac")
	for _, c := range cards {
		shown[c.Index()]++
	}
	got, err := Unseen(2, shown)
	if err != nil {
		t.Fatal(err)
	}
	want, err := fullShoe(t, 2).Without(cards...)
	if err != nil {
		t.Fatal(err)
	}
	if got != want || got.Values() != (Values{30, 7, 8, 8, 8, 8, 8, 8, 6, 8}) {
		t.Errorf("%v, want %v", got, want)
	}
	if same, err := got.Without(round.Masked, 0); same != got || err != nil {
		t.Errorf("masked cards stay unseen: %v, %v", same.Values(), err)
	}
}

func TestCompositionRefuses(t *testing.T) {
	refused := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	for _, decks := range []int{-1, 0, 13} {
		_, err := FullShoe(decks)
		refused(err, fmt.Sprintf("%d decks: a shoe has 1 to 12", decks))
	}
	_, err := Unseen(1, [round.Faces]uint8{7: 2})
	refused(err, "card 8s: 2 were shown")
	_, err = ByFace([round.Faces]int{7: -1})
	refused(err, "card 8s: -1 unseen")
	_, err = ByFace([round.Faces]int{7: 13})
	refused(err, "card 8s: 13 unseen")
	_, err = ByValue([10]int{3: -1})
	refused(err, "value 3: -1 unseen")
	_, err = ByValue([10]int{3: 49})
	refused(err, "0 to 48")
	_, err = ByValue([10]int{193})
	refused(err, "0 to 192")
	_, err = fullShoe(t, 1).Without(cardsOf(t, "8s 8s")...)
	refused(err, "card 8s: none is left")
	byValue, err := ByValue([10]int{16, 4, 4, 4, 4, 4, 4, 4, 4, 4})
	if err != nil || byValue.Faced() {
		t.Fatal(err)
	}
	_, err = byValue.Without(cardsOf(t, "8s")...)
	refused(err, "by value only")
}
