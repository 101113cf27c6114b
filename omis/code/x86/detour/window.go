package detour

import (
	"fmt"

	"mirador/omis/code/x86/relocate"
)

// JumpSize is the length of the jump that leads away.
const JumpSize = 5

// Jump encodes jmp rel32.
func Jump(from, to uint64) [JumpSize]byte {
	d := uint32(to - from - JumpSize)
	return [JumpSize]byte{0xe9, byte(d), byte(d >> 8), byte(d >> 16), byte(d >> 24)}
}

// Window is what a jump displaces: whole instructions and, where the last of them
// does not go on, padding behind it, maybe.
type Window struct {
	Addr uint64 // of the jump
	Code []byte
	Ends []int // offsets in Code behind each of the instructions
}

// Displace makes the window of a jump at the beginning of code, which stands at an
// address.
func Displace(addr uint64, code []byte) (Window, error) {
	w := Window{Addr: addr}
	n := 0
	for n < JumpSize {
		if n >= len(code) {
			return w, fmt.Errorf("the function ends within %d bytes", JumpSize)
		}
		if IsLandingPad(code[n:]) {
			if n > 0 {
				return w, fmt.Errorf("an indirect jump may come to %#x", addr+uint64(n))
			}
			n += LandingPad
			w.Ends = append(w.Ends, n)
			continue
		}
		inst, err := Decode(code[n:])
		if err != nil {
			return w, fmt.Errorf("the instruction at %#x is not known", addr+uint64(n))
		}
		n += inst.Len
		w.Ends = append(w.Ends, n)
		if Calls(inst) {
			return w, fmt.Errorf("a thread may be waiting in the system call at %#x", addr+uint64(n-inst.Len))
		}
		// Behind a call is where it returns to, behind a jump whatever is jumped to.
		if n < JumpSize && Leaves(inst) {
			return w, fmt.Errorf("control leaves within its %d bytes", JumpSize)
		}
	}
	w.Code = append([]byte(nil), code[:n]...)
	return w, nil
}

// Whole tells that a single instruction is displaced: nobody can be inside it.
func (w *Window) Whole() bool { return len(w.Ends) == 1 }

// Length is how many bytes of the program are displaced.
func (w *Window) Length() uint64 { return uint64(len(w.Code)) }

// End is the address behind them.
func (w *Window) End() uint64 { return w.Addr + w.Length() }

// Start is the address of the i-th instruction.
func (w *Window) Start(i int) uint64 { return w.Addr + uint64(w.begin(i)) }

func (w *Window) begin(i int) int {
	if i == 0 {
		return 0
	}
	return w.Ends[i-1]
}

// Inside tells whether an address is behind the beginning of the displaced
// instructions: no thread may stand there, or have it in the frame of a signal,
// when the jump is written.
func (w *Window) Inside(addr uint64) bool { return addr > w.Addr && addr < w.End() }

// Copy relocates the displaced instructions to an address; starts has the offset
// in the copy of each. At its end the copy leads back.
func (w *Window) Copy(to uint64) (copied []byte, starts []int, err error) {
	for i := range w.Ends {
		starts = append(starts, len(copied))
		next, err := w.CopyOne(i, to+uint64(len(copied)))
		if err != nil {
			return nil, nil, err
		}
		copied = append(copied, next...)
	}
	return copied, starts, nil
}

// CopyOne relocates the i-th instruction; the copy of the next one has to stand
// right behind.
func (w *Window) CopyOne(i int, to uint64) ([]byte, error) {
	c, err := relocate.Instruction(w.Code[w.begin(i):w.Ends[i]], w.Start(i), to)
	if err != nil || i == len(w.Ends)-1 {
		return c.Code, err
	}
	return withoutJump(c.Code, to, w.Addr+uint64(w.Ends[i])), nil
}

// withoutJump takes off the jump to the next instruction, which follows anyway.
func withoutJump(code []byte, at, next uint64) []byte {
	n := len(code) - JumpSize
	if n >= 0 && [JumpSize]byte(code[n:]) == Jump(at+uint64(n), next) {
		return code[:n]
	}
	return code
}
