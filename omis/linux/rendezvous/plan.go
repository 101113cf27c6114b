//go:build linux && amd64

package rendezvous

import (
	"fmt"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/code/x86/detour"
)

const (
	jumpSize = detour.JumpSize
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
type Plan struct{ detour.Window }

// Survey finds out whether a jump can stand at addr, which must be the beginning
// of an instruction. Where it displaces several instructions, none but the first
// may be gone to from anywhere; that is known only of functions without indirect
// jumps. The error is a *Refusal.
//
// The jump must lie within a machine word: what is written there at once is
// either there or not for whoever runs into it meanwhile, and so it can be taken
// away when nobody is left to stop the threads.
func Survey(fn Function, addr uint64) (Plan, error) {
	p := Plan{detour.Window{Addr: addr}}
	if addr < fn.Start || addr >= fn.Start+uint64(len(fn.Code)) {
		return p, p.refuse("it is outside the function at %#x", fn.Start)
	}
	if addr%wordSize > wordSize-jumpSize {
		return p, p.refuse("the jump would lie in two words, which are not written at once")
	}
	var err error
	if p.Window, err = detour.Displace(addr, fn.Code[addr-fn.Start:]); err != nil {
		return p, p.refuse("%v", err)
	}
	return p, p.check(fn)
}

func (p *Plan) refuse(format string, args ...any) error {
	return &Refusal{p.Addr, fmt.Sprintf(format, args...)}
}

// check goes through the function. An instruction must begin where the jump is to
// stand, and none may jump into the displaced ones.
func (p *Plan) check(fn Function) error {
	boundary := p.Addr == fn.Start
	for n := 0; n < len(fn.Code) && !(boundary && p.Whole()); {
		at := fn.Start + uint64(n)
		boundary = boundary || at == p.Addr
		if detour.IsLandingPad(fn.Code[n:]) {
			n += detour.LandingPad
			continue
		}
		inst, err := detour.Decode(fn.Code[n:])
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
