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

// Refusal is the reason why a place cannot have a jump; a breakpoint may be possible.
type Refusal struct {
	Addr uint64
	Why  string
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("no jump can be put at %#x: %s", r.Addr, r.Why)
}

// Function is a part of the program text, as the symbol table bounds it, which other code
// enters only at its start.
type Function struct {
	Start uint64
	Code  []byte // the content of the file, without breakpoints
}

// Plan describes what a jump at an address displaces.
type Plan struct{ detour.Window }

// Survey finds out whether a jump can be put at addr, which must be the beginning of an
// instruction. If the jump displaces several instructions, no other code may jump to any
// but the first; this is known only for functions without indirect jumps. The error is a
// *Refusal.
//
// The jump must lie within a machine word: a write of a word is atomic for threads that
// execute it, so the jump can be removed even when the threads cannot be stopped, after
// the monitor's death.
func Survey(fn Function, addr uint64) (Plan, error) {
	p := Plan{detour.Window{Addr: addr}}
	if addr < fn.Start || addr >= fn.Start+uint64(len(fn.Code)) {
		return p, p.refuse("it is outside the function at %#x", fn.Start)
	}
	if addr%wordSize > wordSize-jumpSize {
		return p, p.refuse("the jump would cross two machine words, which cannot be written at once")
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

// check decodes the function. An instruction must begin at the jump's address, and none
// may jump into the displaced ones.
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
