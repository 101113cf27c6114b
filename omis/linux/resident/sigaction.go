//go:build linux && amd64

package resident

import "encoding/binary"

// Sigaction is the kernel's struct sigaction on x86-64.
type Sigaction struct{ Handler, Flags, Restorer, Mask uint64 }

// SigsetSize is that of a set of signals.
const SigsetSize = 8

const (
	saSiginfo  = 0x4
	saRestorer = 0x4000000
	saOnStack  = 0x8000000
	saRestart  = 0x10000000
	saNoDefer  = 0x40000000
)

// Action is what SIGTRAP is set to while breakpoints stand: SA_ONSTACK because
// a breakpoint may be hit on a stack with no room left, SA_NODEFER because a
// chained handler may hit one too.
func (h Home) Action() Sigaction {
	return Sigaction{Handler: h.Handler(), Flags: saSiginfo | saRestorer | saOnStack | saRestart | saNoDefer, Restorer: h.Restorer()}
}

// Handled tells that the program has a handler: the action is neither SIG_DFL nor SIG_IGN.
func (a Sigaction) Handled() bool { return a.Handler > 1 }

// Encode gives the bytes for rt_sigaction.
func (a Sigaction) Encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, a.Handler)
	b = binary.LittleEndian.AppendUint64(b, a.Flags)
	b = binary.LittleEndian.AppendUint64(b, a.Restorer)
	return binary.LittleEndian.AppendUint64(b, a.Mask)
}

// ParseSigaction reads what rt_sigaction wrote.
func ParseSigaction(b []byte) Sigaction {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i*8:]) }
	return Sigaction{word(0), word(1), word(2), word(3)}
}

// A sweep of a thread through the actions for signals begins and ends here: behind the
// INT3 its registers are to be taken back.
func (h Home) Sweep() uint64    { return uint64(h) + offsetSweep }
func (h Home) SweepEnd() uint64 { return h.Sweep() + uint64(len(sweepCode())) }

// SweepCall is a call that puts SIGTRAP into the masks of the actions for some signals,
// or takes it out of them. It is made at Sweep; number is that of rt_sigaction.
func SweepCall(number, signals uint64, block bool) Call {
	c := Call{Args: [6]uint64{3: SigsetSize, 4: signals}}
	if block {
		c.Block[SigactionSize] = 1
	}
	binary.LittleEndian.PutUint64(c.Block[SigactionSize+16:], number)
	return c
}

// Swept are the signals whose actions a sweep has changed, from what it left of its block.
func Swept(block []byte) uint64 { return binary.LittleEndian.Uint64(block[SigactionSize+8:]) }
