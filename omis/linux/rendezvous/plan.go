//go:build linux && amd64

package rendezvous

import (
	"fmt"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/linux/relocate"
)

// jumpSize is the length of the jump that is put at a place.
const jumpSize = 5

const (
	pageSize = 0x1000
	wordSize = 8
)

// Refusal says why no jump can stand at an address; a breakpoint may.
type Refusal struct {
	Addr uint64
	Why  string
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("no jump can be put at %#x: %s", r.Addr, r.Why)
}

// Function is a piece of program text that control enters at its start only, as
// the symbol table bounds it.
type Function struct {
	Start uint64
	Code  []byte // as the file has it, without breakpoints
}

// Plan says what a jump at an address displaces.
type Plan struct {
	Addr uint64
	code []byte // the displaced instructions
	ends []int  // offsets in code behind each of them
}

// Survey finds out whether a jump can stand at addr, which must be the beginning
// of an instruction. Where it displaces several instructions, none but the first
// may be gone to from anywhere; that is known only of functions without indirect
// jumps. The error is a *Refusal.
//
// The jump must lie within a machine word: what is written there at once is
// either there or not for whoever runs into it meanwhile, and so it can be taken
// away when nobody is left to stop the threads.
func Survey(fn Function, addr uint64) (Plan, error) {
	p := Plan{Addr: addr}
	if addr < fn.Start || addr >= fn.Start+uint64(len(fn.Code)) {
		return p, p.refuse("it is outside the function at %#x", fn.Start)
	}
	if addr%wordSize > wordSize-jumpSize {
		return p, p.refuse("the jump would lie in two words, which are not written at once")
	}
	if err := p.displace(fn.Code[addr-fn.Start:]); err != nil {
		return p, err
	}
	return p, p.check(fn)
}

func (p *Plan) refuse(format string, args ...any) error {
	return &Refusal{p.Addr, fmt.Sprintf(format, args...)}
}

const landingPad = 4 // bytes of an endbr64

func isEndbr64(code []byte) bool {
	return len(code) >= landingPad && [landingPad]byte(code) == [landingPad]byte{0xf3, 0x0f, 0x1e, 0xfa}
}

// displace takes as many whole instructions as the jump covers.
func (p *Plan) displace(code []byte) error {
	n := 0
	for n < jumpSize {
		if n >= len(code) {
			return p.refuse("the function ends within %d bytes", jumpSize)
		}
		if isEndbr64(code[n:]) {
			if n > 0 {
				return p.refuse("an indirect jump may come to %#x", p.Addr+uint64(n))
			}
			// Linux enforces landing pads in the kernel only.
			n += landingPad
			p.ends = append(p.ends, n)
			continue
		}
		inst, err := decode(code[n:])
		if err != nil {
			return p.refuse("the instruction at %#x is not known", p.Addr+uint64(n))
		}
		n += inst.Len
		p.ends = append(p.ends, n)
		if inst.Op == x86asm.SYSCALL || inst.Op == x86asm.SYSENTER {
			return p.refuse("a thread may be waiting in the system call at %#x", p.Addr+uint64(n-inst.Len))
		}
		// Behind a call is where it returns to, behind a jump whatever is jumped to.
		if n < jumpSize && leaves(inst) {
			return p.refuse("control leaves within its %d bytes", jumpSize)
		}
	}
	p.code = append([]byte(nil), code[:n]...)
	return nil
}

func decode(code []byte) (x86asm.Inst, error) {
	inst, err := x86asm.Decode(code, 64)
	// Op(0) without an error is what the decoder answers on instructions its tables lack.
	if err == nil && inst.Op == 0 {
		err = x86asm.ErrUnrecognized
	}
	return inst, err
}

// leaves tells whether execution does not, or not at once, go on behind inst.
func leaves(inst x86asm.Inst) bool {
	switch inst.Op {
	case x86asm.CALL, x86asm.JMP, x86asm.RET, x86asm.LCALL, x86asm.LJMP, x86asm.LRET, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ:
		return true
	}
	return false
}

// check goes through the function. An instruction must begin where the jump is to
// stand, and none may jump into the displaced ones.
func (p *Plan) check(fn Function) error {
	boundary := p.Addr == fn.Start
	for n := 0; n < len(fn.Code) && !(boundary && p.Whole()); {
		at := fn.Start + uint64(n)
		boundary = boundary || at == p.Addr
		if isEndbr64(fn.Code[n:]) {
			n += landingPad
			continue
		}
		inst, err := decode(fn.Code[n:])
		if err != nil {
			return p.refuse("the function has an unknown instruction at %#x, which may jump", at)
		}
		n += inst.Len
		switch target := inst.Args[0].(type) {
		case x86asm.Rel:
			if to := fn.Start + uint64(n) + uint64(int64(target)); p.Inside(to) {
				return p.refuse("the instruction at %#x jumps to %#x", at, to)
			}
		default:
			if inst.Op == x86asm.JMP {
				return p.refuse("the function has an indirect jump at %#x", at)
			}
		}
	}
	if !boundary {
		return p.refuse("no instruction of the function begins there")
	}
	return nil
}

// Whole tells that a single instruction is displaced: nobody can be inside it.
func (p *Plan) Whole() bool { return len(p.ends) == 1 }

// Length is how many bytes of the program are displaced.
func (p *Plan) Length() uint64 { return uint64(len(p.code)) }

// Inside tells whether an address is behind the beginning of the displaced
// instructions: no thread may stand there, or have it in the frame of a signal,
// when the jump is written.
func (p *Plan) Inside(addr uint64) bool {
	return addr > p.Addr && addr < p.Addr+uint64(len(p.code))
}

// copyTo relocates the displaced instructions; moved has the offset in the copy
// of each, and of what leads back.
func (p *Plan) copyTo(to uint64) (copied []byte, moved []int, err error) {
	begin := 0
	for i, end := range p.ends {
		moved = append(moved, len(copied))
		here := to + uint64(len(copied))
		c, err := relocate.Instruction(p.code[begin:end], p.Addr+uint64(begin), here)
		if err != nil {
			return nil, nil, p.refuse("%v", err)
		}
		next := c.Code
		if i < len(p.ends)-1 {
			next = withoutJump(next, here, p.Addr+uint64(end))
		}
		copied = append(copied, next...)
		begin = end
	}
	return copied, moved, nil
}

// withoutJump takes off the jump to the next instruction, which follows anyway.
func withoutJump(code []byte, at, next uint64) []byte {
	n := len(code) - jumpSize
	if n >= 0 && [jumpSize]byte(code[n:]) == jump(at+uint64(n), next) {
		return code[:n]
	}
	return code
}

// jump encodes jmp rel32.
func jump(from, to uint64) [jumpSize]byte {
	d := uint32(to - from - jumpSize)
	return [jumpSize]byte{0xe9, byte(d), byte(d >> 8), byte(d >> 16), byte(d >> 24)}
}
