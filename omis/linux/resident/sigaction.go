//go:build linux && amd64

package resident

import "encoding/binary"

// Sigaction is the kernel's struct sigaction on x86-64.
type Sigaction struct{ Handler, Flags, Restorer, Mask uint64 }

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
