package node

// Condition is a condition of the processor's flags, as conditional jumps have. Always is no condition.
type Condition uint8

const Always Condition = 0

// MostConditions is the number of the processor's conditions. Each is the opposite of the one with the same number
// except for the last bit.
const MostConditions = 16

// If returns the condition with the number that it has in conditional jumps.
func If(number uint8) Condition { return Condition(number%MostConditions) + 1 }

// Number returns the condition's number in conditional jumps. It must not be Always.
func (c Condition) Number() uint8 { return uint8(c) - 1 }

// Bits of the flags.
const (
	FlagCarry    = 1 << 0
	FlagParity   = 1 << 2
	FlagZero     = 1 << 6
	FlagSign     = 1 << 7
	FlagOverflow = 1 << 11
)

// Test is the meaning of a condition: one of the flags of Any is set, or sign and overflow differ if Differ.
// Not is the opposite.
type Test struct {
	Any    uint64
	Differ bool
	Not    bool
}

// Test returns the meaning of a condition. It must not be Always.
func (c Condition) Test() Test {
	t := [MostConditions / 2]Test{
		{Any: FlagOverflow}, {Any: FlagCarry}, {Any: FlagZero}, {Any: FlagCarry | FlagZero},
		{Any: FlagSign}, {Any: FlagParity}, {Differ: true}, {Any: FlagZero, Differ: true},
	}[c.Number()/2]
	t.Not = c.Number()%2 == 1
	return t
}

// Holds reports whether the flags fulfil the condition.
func (c Condition) Holds(flags uint64) bool {
	if c == Always {
		return true
	}
	t := c.Test()
	yes := flags&t.Any != 0 || t.Differ && (flags&FlagSign != 0) != (flags&FlagOverflow != 0)
	return yes != t.Not
}
