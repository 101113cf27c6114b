package program_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"mirador/omis/program"
)

func whole(u program.Uint128) *big.Int {
	b := new(big.Int).Lsh(new(big.Int).SetUint64(u.Hi), 64)
	return b.Add(b, new(big.Int).SetUint64(u.Lo))
}

// summed returns the Intervals of durations, as a placement sums them.
func summed(list []uint64) (i program.Intervals) {
	for k, ns := range list {
		i.Count++
		i.Last, i.Max = ns, max(i.Max, ns)
		if k == 0 || ns < i.Min {
			i.Min = ns
		}
		i.Sum = i.Sum.Add(program.Uint128{Lo: ns})
		i.Squares = i.Squares.Add(program.Uint128{Lo: ns}.Times(ns))
	}
	return i
}

// TestIntervalsWithoutBias checks that Without returns the same as measuring shorter intervals.
func TestIntervalsWithoutBias(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bias := rapid.Int64Range(-1e6, 1e6).Draw(t, "bias")
		list := rapid.SliceOfN(rapid.Uint64Range(1e6, math.MaxUint64>>2), 0, 20).Draw(t, "intervals")
		short := make([]uint64, len(list))
		for i, ns := range list {
			short[i] = ns - uint64(bias)
		}
		if got, want := summed(list).Without(bias), summed(short); got != want {
			t.Fatalf("%v without %d:\n got %+v\nwant %+v", list, bias, got, want)
		}
	})
}

// TestSquaresWithoutBias checks the sum of squares if some intervals are shorter than the
// bias.
func TestSquaresWithoutBias(t *testing.T) {
	list := []uint64{10, 90, 30}
	got := summed(list).Without(50)
	if want := int64(40*40 + 40*40 + 20*20); whole(got.Squares).Int64() != want {
		t.Errorf("squares are %v, want %d", got.Squares, want)
	}
	if got.Min != 0 || got.Max != 40 || got.Last != 0 || got.Sum != (program.Uint128{}) || got.Count != 3 {
		t.Errorf("got %+v: a value is negative or wrapped around", got)
	}
}

func TestUint128(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Custom(func(t *rapid.T) program.Uint128 {
			return program.Uint128{Hi: rapid.Uint64().Draw(t, "hi"), Lo: rapid.Uint64().Draw(t, "lo")}
		})
		u, v, n := number.Draw(t, "u"), number.Draw(t, "v"), rapid.Uint64().Draw(t, "n")
		modulus := new(big.Int).Lsh(big.NewInt(1), 128)
		for what, pair := range map[string][2]*big.Int{
			"sum":        {whole(u.Add(v)), new(big.Int).Add(whole(u), whole(v))},
			"difference": {whole(u.Sub(v)), new(big.Int).Sub(whole(u), whole(v))},
			"product":    {whole(u.Times(n)), new(big.Int).Mul(whole(u), new(big.Int).SetUint64(n))},
		} {
			if want := pair[1].Mod(pair[1], modulus); pair[0].Cmp(want) != 0 {
				t.Fatalf("the %s of %v and %v (%d) is %v, want %v", what, u, v, n, pair[0], want)
			}
		}
		if u.Less(v) != (whole(u).Cmp(whole(v)) < 0) {
			t.Fatalf("%v < %v is wrong", u, v)
		}
	})
}

// TestSquaredDeviations checks the result against the definition, in exact arithmetic.
func TestSquaredDeviations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Uint64Range(0, math.MaxUint64>>3).Draw(t, "base")
		list := rapid.SliceOfN(rapid.Uint64Range(base, base+1000), 1, 20).Draw(t, "intervals")
		i := summed(list)
		n := big.NewRat(i.Count, 1)
		mean := new(big.Rat).Quo(new(big.Rat).SetInt(whole(i.Sum)), n)
		want := new(big.Rat)
		for _, ns := range list {
			d := new(big.Rat).Sub(new(big.Rat).SetInt(new(big.Int).SetUint64(ns)), mean)
			want.Add(want, d.Mul(d, d))
		}
		exact, _ := want.Float64()
		if got := program.SquaredDeviations(uint64(i.Count), i.Sum, i.Squares); got != exact {
			t.Fatalf("of %v: %g, want %g", list, got, exact)
		}
	})
	if got := program.SquaredDeviations(2, program.Uint128{Lo: 10}, program.Uint128{Lo: 1}); got != 0 {
		t.Errorf("impossible sums give %g", got)
	}
	if got := program.SquaredDeviations(0, program.Uint128{}, program.Uint128{}); got != 0 {
		t.Errorf("no numbers give %g", got)
	}
}
