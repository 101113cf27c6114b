package omis

import "math"

// Load says where a step finds its value among what an event tells; the zero Load: nowhere,
// it is always the same.
type Load struct {
	From   Origin
	Arg    uint8 // FromArgument: which, the first is 0
	Bytes  uint8 // how many of the lowest bytes are the value: 1, 2, 4 or 8
	Signed bool
	Amount bool // of what is negative, 0 is the value
}

// Origin is a kind of what an event tells.
type Origin uint8

const (
	FromArgument Origin = iota + 1 // an argument of the call
	FromResult                     // its result: -1 where it has failed
	FromError                      // its error number: 0 where it has not
)

// ArgumentsOf are the context parameters of an address reached: the arguments as integers with
// a sign, of 64 bits each, and then of 32.
func ArgumentsOf(a Args) (list [2 * len(Args{})]Value) {
	for i := range list {
		v, _ := ArgumentAt(i).Of(a[i%len(a)])
		list[i] = Int(v)
	}
	return list
}

// ArgumentAt says how one of them is loaded.
func ArgumentAt(param int) Load {
	const n = len(Args{})
	l := Load{From: FromArgument, Arg: uint8(param % n), Bytes: 8, Signed: true}
	if param >= n {
		l.Bytes = 4
	}
	return l
}

// IsLoaded tells whether there is something to load.
func (l Load) IsLoaded() bool { return l.From != 0 }

// MayOverflow tells whether a value may be too great for a sum. It is not added then, and
// counts as lost.
func (l Load) MayOverflow() bool { return l.From == FromArgument && l.Bytes == 8 && !l.Signed }

// Of makes the value of what a register holds, if it fits.
func (l Load) Of(register uint64) (v int64, fits bool) {
	unused := 64 - 8*uint(l.Bytes)
	if l.Signed {
		v = int64(register<<unused) >> unused
		if l.Amount {
			v = max(v, 0)
		}
		return v, true
	}
	register = register << unused >> unused
	return int64(register), register <= math.MaxInt64
}

// Loader is the capability of a Node to have programs load what its events tell.
type Loader interface {
	// Load says how programs get at one of the event's context parameters, counted from 0.
	// The error is a *Refusal where only the monitor can tell its value.
	Load(w Watch, param int) (Load, error)
}
