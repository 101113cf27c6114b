//go:build linux && amd64

package resident

import "encoding/binary"

// Sigaction is the kernel's struct sigaction on x86-64.
type Sigaction struct{ Handler, Flags, Restorer, Mask uint64 }

// SigsetSize is the size of a set of signals.
const SigsetSize = 8

const (
	saSiginfo  = 0x4
	saRestorer = 0x4000000
	saOnStack  = 0x8000000
	saRestart  = 0x10000000
	saNoDefer  = 0x40000000
)

// Action returns the action for SIGTRAP while there are breakpoints: SA_ONSTACK because a
// thread may hit a breakpoint on a stack without free space, SA_NODEFER because the
// program's own handler may hit one too.
func (h Home) Action() Sigaction {
	return Sigaction{Handler: h.Handler(), Flags: saSiginfo | saRestorer | saOnStack | saRestart | saNoDefer, Restorer: h.Restorer()}
}

// Handled reports whether the program has a handler: the action is neither SIG_DFL nor
// SIG_IGN.
func (a Sigaction) Handled() bool { return a.Handler > 1 }

// Encode returns the bytes for rt_sigaction.
func (a Sigaction) Encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, a.Handler)
	b = binary.LittleEndian.AppendUint64(b, a.Flags)
	b = binary.LittleEndian.AppendUint64(b, a.Restorer)
	return binary.LittleEndian.AppendUint64(b, a.Mask)
}

// ParseSigaction parses the bytes that rt_sigaction wrote.
func ParseSigaction(b []byte) Sigaction {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i*8:]) }
	return Sigaction{word(0), word(1), word(2), word(3)}
}

// Sweep is the address of the code that changes the masks of signal actions. SweepEnd is
// the address after the INT3 at its end, where the thread stops and the monitor restores
// its registers.
func (h Home) Sweep() uint64    { return uint64(h) + offsetSweep }
func (h Home) SweepEnd() uint64 { return h.Sweep() + uint64(len(sweepCode())) }

// SweepCall returns a call, to be made at Sweep, that adds SIGTRAP to the masks of the
// actions of some signals, or removes it. number is that of rt_sigaction.
func SweepCall(number, signals uint64, block bool) Call {
	c := Call{Args: [6]uint64{3: SigsetSize, 4: signals}}
	if block {
		c.Block[SigactionSize] = 1
	}
	binary.LittleEndian.PutUint64(c.Block[SigactionSize+16:], number)
	return c
}

// Swept returns the signals whose actions a sweep has changed, from its block of memory.
func Swept(block []byte) uint64 { return binary.LittleEndian.Uint64(block[SigactionSize+8:]) }
