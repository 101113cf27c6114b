package program

import "math/bits"

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

// Without returns the intervals as if each were shorter by the given bias of the probes:
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
