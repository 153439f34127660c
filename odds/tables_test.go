package odds

import (
	"encoding/csv"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"shoed/round"
)

// row of a reference table, by column.
type row map[string]string

func readReference(t *testing.T, name string) []row {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for _, line := range lines[1:] {
		r := row{}
		for i, column := range lines[0] {
			r[column] = line[i]
		}
		rows = append(rows, r)
	}
	return rows
}

func (r row) uint(t *testing.T, column string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(r[column], 10, 64)
	if err != nil {
		t.Fatalf("%v: column %s: %v", r, column, err)
	}
	return n
}

func (r row) int(t *testing.T, column string) int { return int(r.uint(t, column)) }

// rounded says whether exact, rounded to as many decimals, is the text.
func rounded(text string, exact float64) bool {
	_, decimals, _ := strings.Cut(text, ".")
	want, err := strconv.ParseFloat(text, 64)
	// A float64 holds these to 1e-16; half of the last digit decides.
	return err == nil && math.Abs(want-exact) <= 0.5*math.Pow10(-len(decimals))*(1+1e-9)
}

func float(r *big.Rat) float64 {
	f, _ := r.Float64()
	return f
}

func fullShoe(t testing.TB, decks int) Composition {
	t.Helper()
	c, err := FullShoe(decks)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func joint(t testing.TB, v Values) *Joint {
	t.Helper()
	var j Joint
	if err := j.Count(v); err != nil {
		t.Fatalf("%v: %v", v, err)
	}
	return &j
}

// hand of values; -1 is a masked card.
func handOf(values ...int) (h round.Hand) {
	for _, v := range values {
		c := round.Masked
		switch {
		case v == 0:
			c = round.NewCard(10, round.Spade)
		case v > 0:
			c = round.NewCard(v, round.Spade)
		}
		h.Cards[h.N] = c
		h.N++
	}
	return h
}
