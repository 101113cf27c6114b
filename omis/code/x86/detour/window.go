package detour

import (
	"fmt"

	"mirador/omis/code/x86/relocate"
)

// JumpSize is the length of the jump.
const JumpSize = 5

// Jump encodes jmp rel32.
func Jump(from, to uint64) [JumpSize]byte {
	d := uint32(to - from - JumpSize)
	return [JumpSize]byte{0xe9, byte(d), byte(d >> 8), byte(d >> 16), byte(d >> 24)}
}

// Window is what a jump displaces: whole instructions and possibly, if execution does not
// continue after the last one, padding.
type Window struct {
	Addr uint64 // address of the jump
	Code []byte
	Ends []int // offset in Code of the end of each instruction
}

// Displace returns the window of a jump at the beginning of code, which is at addr.
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
		// Execution may come to the byte after this instruction: after a call when the
		// function returns, after a jump by some other jump.
		if n < JumpSize && Leaves(inst) {
			return w, fmt.Errorf("execution leaves the function within its %d bytes", JumpSize)
		}
	}
	w.Code = append([]byte(nil), code[:n]...)
	return w, nil
}

// Whole reports whether the jump displaces a single instruction, so that no thread can be
// inside.
func (w *Window) Whole() bool { return len(w.Ends) == 1 }

// Length returns the number of displaced bytes.
func (w *Window) Length() uint64 { return uint64(len(w.Code)) }

// End returns the address after the displaced bytes.
func (w *Window) End() uint64 { return w.Addr + w.Length() }

// Start returns the address of the i-th instruction.
func (w *Window) Start(i int) uint64 { return w.Addr + uint64(w.begin(i)) }

func (w *Window) begin(i int) int {
	if i == 0 {
		return 0
	}
	return w.Ends[i-1]
}

// Inside reports whether an address is after the beginning of the displaced
// instructions: when the jump is written, no thread may be there, or return there from a
// signal handler.
func (w *Window) Inside(addr uint64) bool { return addr > w.Addr && addr < w.End() }

// Copy relocates the displaced instructions to an address; starts contains the offset of
// each in the copy. The end of the copy jumps back.
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

// CopyOne relocates the i-th instruction. The caller must put the copy of the next one
// directly after it.
func (w *Window) CopyOne(i int, to uint64) ([]byte, error) {
	c, err := relocate.Instruction(w.Code[w.begin(i):w.Ends[i]], w.Start(i), to)
	if err != nil || i == len(w.Ends)-1 {
		return c.Code, err
	}
	return withoutJump(c.Code, to, w.Addr+uint64(w.Ends[i])), nil
}

// withoutJump removes the jump to the next instruction, whose copy follows.
func withoutJump(code []byte, at, next uint64) []byte {
	n := len(code) - JumpSize
	if n >= 0 && [JumpSize]byte(code[n:]) == Jump(at+uint64(n), next) {
		return code[:n]
	}
	return code
}
