package omis

import (
	"errors"
	"fmt"
	"math"
)

// Kind is the type of a Value (OMIS 7.2.1).
type Kind uint8

const (
	KindInt    Kind = iota + 1 // N, negative if Neg is set
	KindFloat                  // Float; for a duration also N, in nanoseconds
	KindString                 // Str, unquoted
	KindBinary                 // Str, raw bytes
	KindToken                  // Str
	KindList                   // List
	KindParam                  // Str: name of an event context parameter, without "$"
)

func (k Kind) String() string {
	switch k {
	case KindInt:
		return "integer"
	case KindFloat:
		return "floating"
	case KindString:
		return "string"
	case KindBinary:
		return "binary"
	case KindToken:
		return "token"
	case KindList:
		return "list"
	case KindParam:
		return "event context parameter"
	}
	return "nothing"
}

// Value is one value of a request or a reply. Integers range from -(2^64-1) to 2^64-1, so
// that addresses and register contents need no other type.
type Value struct {
	Kind  Kind
	Neg   bool
	N     uint64
	Float float64
	Str   string
	List  []Value
	Pos   int // byte offset in the request text; 0 in values that were not parsed
}

func Int(n int64) Value {
	if n < 0 {
		return Value{Kind: KindInt, Neg: true, N: uint64(-n)}
	}
	return Value{Kind: KindInt, N: uint64(n)}
}

func Uint(n uint64) Value      { return Value{Kind: KindInt, N: n} }
func Float(f float64) Value    { return Value{Kind: KindFloat, Float: f} }
func String(s string) Value    { return Value{Kind: KindString, Str: s} }
func Binary(b []byte) Value    { return Value{Kind: KindBinary, Str: string(b)} }
func TokenValue(t Token) Value { return Value{Kind: KindToken, Str: string(t)} }
func List(vs ...Value) Value   { return Value{Kind: KindList, List: vs} }
func (v Value) Token() Token   { return Token(v.Str) }
func (v Value) Position() int  { return v.Pos }

// Seconds returns a duration as a floating number of seconds. Nanoseconds returns it without
// rounding.
func Seconds(ns uint64) Value { return Value{Kind: KindFloat, Float: float64(ns) / 1e9, N: ns} }

// Nanoseconds returns a number of seconds in whole nanoseconds, limited to the range of uint64.
func (v Value) Nanoseconds() uint64 {
	seconds, _ := v.Number()
	switch ns := math.Round(seconds * 1e9); {
	case v.Kind == KindFloat && v.N > 0:
		return v.N
	case !(ns > 0):
		return 0
	case ns >= math.MaxUint64:
		return math.MaxUint64
	default:
		return uint64(ns)
	}
}

// Tokens returns a list of tokens.
func Tokens(ts ...Token) Value {
	vs := make([]Value, len(ts))
	for i, t := range ts {
		vs[i] = TokenValue(t)
	}
	return List(vs...)
}

// Int64 returns an integer as an int64; ok is false if it does not fit or v is not an
// integer.
func (v Value) Int64() (n int64, ok bool) {
	const limit = 1 << 63
	switch {
	case v.Kind != KindInt:
		return 0, false
	case v.Neg && v.N <= limit:
		return -int64(v.N), true
	case !v.Neg && v.N < limit:
		return int64(v.N), true
	}
	return 0, false
}

// Uint64 returns an integer as an address or a register holds it: a negative one in two's
// complement.
func (v Value) Uint64() (n uint64, ok bool) {
	if v.Kind != KindInt {
		return 0, false
	}
	if v.Neg {
		return -v.N, v.N <= 1<<63
	}
	return v.N, true
}

// Number returns an integer or a floating value as a float64.
func (v Value) Number() (f float64, ok bool) {
	switch v.Kind {
	case KindFloat:
		return v.Float, true
	case KindInt:
		f = float64(v.N)
		if v.Neg {
			f = -f
		}
		return f, true
	}
	return 0, false
}

// Call is one service with its parameters: an event definition or an action.
type Call struct {
	Service string
	Args    []Value
	Barrier bool // a semicolon follows this action
	Pos     int  // byte offset of the service name
}

// Request is a parsed request (OMIS 7.2.1). Event is nil in an unconditional request;
// Locked reports that the action list is in braces.
type Request struct {
	Event   *Call
	Actions []Call
	Locked  bool
}

// Error is a service's error for an object, as a reply contains it: a status and a
// message for the user.
type Error struct {
	Status Status
	Msg    string
	Cause  error // nil if there is none, or if the error was read from a reply
}

func (e *Error) Error() string { return e.Msg }
func (e *Error) Unwrap() error { return e.Cause }

// Errorf returns an *Error. Its cause is the argument for %w.
func Errorf(s Status, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Status: s, Msg: err.Error(), Cause: errors.Unwrap(err)}
}

// StatusOf returns the status of an error: OK for nil, UnspecifiedError if it is no *Error.
func StatusOf(err error) Status {
	var e *Error
	switch {
	case err == nil:
		return OK
	case errors.As(err, &e):
		return e.Status
	}
	return UnspecifiedError
}
