package program

import (
	"math"
	"math/bits"

	"mirador/omis"
	"mirador/omis/node"
)

// Load describes where a program's step finds its value in the event. The zero Load means
// that the value is constant (Op.Value).
type Load struct {
	From   Origin
	Arg    uint8 // FromArgument: its index from 0
	Bytes  uint8 // number of low-order bytes that form the value: 1, 2, 4 or 8
	Signed bool
	Amount bool // the step takes a negative value as 0
}

// Origin is the part of an event that a value comes from.
type Origin uint8

const (
	FromArgument Origin = iota + 1 // an argument of the call
	FromResult                     // the result of the call; -1 if the call failed
	FromError                      // the error number of the call; 0 if it succeeded
	// FromStack is the stack pointer of the hit: in a function of Go its distance from the upper end of the
	// goroutine's stack, behind a record of the goroutine (MarkOfGoroutine). FromStep is what the program's step before
	// has measured: the interval that OpStop closed, or the thread's sum after OpAdd. Only
	// OpTrace takes them. It appends nothing if OpStop closed no interval.
	FromStack
	FromStep
	FromProduct  // the product of the first two arguments: see Product
	FromMessages // the bytes of the messages of sendmmsg or recvmmsg
)

// arguments is the number of context parameters of an address reached.
const arguments = 2*len(node.Args{}) + 1

// Product returns the product of the first two arguments of a function, as calloc takes them. It
// is -1 if one of them is negative, or if the product does not fit.
func Product(a node.Args) int64 {
	if a[0] == 0 {
		return 0
	}
	high, low := bits.Mul64(a[0], a[1])
	if int64(a[0]) < 0 || high != 0 || int64(low) < 0 {
		return -1
	}
	return int64(low)
}

// ArgumentsOf returns the context parameters of an address reached: the arguments as
// signed integers of 64 bits each, followed by the same arguments as signed integers of
// 32 bits, and by Product.
func ArgumentsOf(a node.Args) (list [arguments]omis.Value) {
	for i := range list {
		v, _ := ArgumentAt(i).OfCall(a)
		list[i] = omis.Int(v)
	}
	return list
}

// ArgumentAt returns the Load of one parameter of that list.
func ArgumentAt(param int) Load {
	const n = len(node.Args{})
	if param == arguments-1 {
		return Load{From: FromProduct, Bytes: 8, Signed: true}
	}
	l := Load{From: FromArgument, Arg: uint8(param % n), Bytes: 8, Signed: true}
	if param >= n {
		l.Bytes = 4
	}
	return l
}

// IsLoaded reports whether the value comes from the event.
func (l Load) IsLoaded() bool { return l.From != 0 }

// MayOverflow reports whether a value can be too large for a sum. The program does not
// add such a value and counts it as lost.
func (l Load) MayOverflow() bool { return l.From == FromArgument && l.Bytes == 8 && !l.Signed }

// OfCall returns the value of a function's call, and whether it fits into an int64.
func (l Load) OfCall(a node.Args) (v int64, fits bool) {
	if l.From == FromProduct {
		return l.Of(uint64(Product(a)))
	}
	return l.Of(a[l.Arg])
}

// Of returns the value in a register, and whether it fits into an int64.
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

// Loader is the capability of a Node to let programs load values of its events.
type Loader interface {
	// Load returns how programs load a context parameter of the event, counted from 0.
	// The error is a *Refusal if only the monitor can get its value.
	Load(w node.Watch, param int) (Load, error)
}
