package program

import (
	"math/big"
	"math/bits"
)

// Add returns u+v. Like all methods of Uint128 it calculates modulo 2¹²⁸.
func (u Uint128) Add(v Uint128) Uint128 {
	lo, carry := bits.Add64(u.Lo, v.Lo, 0)
	hi, _ := bits.Add64(u.Hi, v.Hi, carry)
	return Uint128{Hi: hi, Lo: lo}
}

// Sub returns u-v.
func (u Uint128) Sub(v Uint128) Uint128 {
	lo, borrow := bits.Sub64(u.Lo, v.Lo, 0)
	hi, _ := bits.Sub64(u.Hi, v.Hi, borrow)
	return Uint128{Hi: hi, Lo: lo}
}

// Times returns u·n.
func (u Uint128) Times(n uint64) Uint128 {
	hi, lo := bits.Mul64(u.Lo, n)
	return Uint128{Hi: hi + u.Hi*n, Lo: lo}
}

// Less reports whether u < v.
func (u Uint128) Less(v Uint128) bool { return u.Hi < v.Hi || u.Hi == v.Hi && u.Lo < v.Lo }

// whole returns u as a number without bound.
func (u Uint128) whole() *big.Int {
	w := new(big.Int).SetUint64(u.Hi)
	return w.Lsh(w, 64).Or(w, new(big.Int).SetUint64(u.Lo))
}

// Float returns the floating point number nearest to u.
func (u Uint128) Float() float64 {
	f, _ := u.whole().Float64()
	return f
}

// SquaredDeviations returns the sum of the squared differences of n numbers from their mean,
// Σx²−(Σx)²/n. Both terms may be 10¹⁵ times as large as the result, so it is computed exactly
// and rounded once. It is 0 if no numbers have these sums.
func SquaredDeviations(n uint64, sum, squares Uint128) float64 {
	if n == 0 {
		return 0
	}
	count, total := new(big.Int).SetUint64(n), sum.whole()
	d := squares.whole()
	d.Mul(d, count).Sub(d, total.Mul(total, total))
	if d.Sign() <= 0 {
		return 0
	}
	f, _ := new(big.Rat).SetFrac(d, count).Float64()
	return f
}

// Without returns the intervals as if each were shorter by the probes' bias:
// Σ(x−c) and Σ(x−c)² follow exactly from Σx and Σx². No result is negative. The
// bias is negative if the processor reads a clock before it has completed preceding
// instructions.
func (i Intervals) Without(nanoseconds int64) Intervals {
	n := uint64(i.Count)
	if n == 0 || nanoseconds == 0 {
		return i
	}
	if nanoseconds < 0 {
		return i.longer(uint64(-nanoseconds))
	}
	bias := uint64(nanoseconds)
	shorter := func(ns uint64) uint64 { return ns - min(ns, bias) }
	i.Last, i.Min, i.Max = shorter(i.Last), shorter(i.Min), shorter(i.Max)
	all := Uint128{Lo: n}.Times(bias)
	i.Squares = i.Squares.Add(all.Times(bias)).Sub(i.Sum.Times(2 * bias))
	if i.Sum.Less(all) {
		i.Sum = Uint128{}
		return i
	}
	i.Sum = i.Sum.Sub(all)
	return i
}

// longer returns the intervals as if each were longer by the given time.
func (i Intervals) longer(by uint64) Intervals {
	all := Uint128{Lo: uint64(i.Count)}.Times(by)
	i.Last, i.Min, i.Max = i.Last+by, i.Min+by, i.Max+by
	i.Squares = i.Squares.Add(all.Times(by)).Add(i.Sum.Times(2 * by))
	i.Sum = i.Sum.Add(all)
	return i
}
