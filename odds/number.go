package odds

import (
	"encoding/json"
	"math/big"
)

// Integer is a number below 2^53 in JSON, where every reader takes it for what
// it is, and a string from there on.
type Integer struct{ *big.Int }

// Whole is n as an Integer.
func Whole(n uint64) Integer { return Integer{new(big.Int).SetUint64(n)} }

// Over is n divided by den, exact.
func (n Integer) Over(den Integer) *big.Rat { return new(big.Rat).SetFrac(n.Int, den.Int) }

// exactBits is the width of a JSON reader's integers (a float64's).
const exactBits = 53

// MarshalJSON writes the digits, quoted when they are too many.
func (n Integer) MarshalJSON() ([]byte, error) {
	if n.BitLen() > exactBits {
		return []byte(`"` + n.String() + `"`), nil
	}
	return []byte(n.String()), nil
}

// Fraction in lowest terms, its sign on the numerator.
type Fraction struct{ *big.Rat }

// MarshalJSON writes numerator and denominator.
func (f Fraction) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Num Integer `json:"num"`
		Den Integer `json:"den"`
	}{Integer{f.Num()}, Integer{f.Denom()}})
}
