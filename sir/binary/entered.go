package binary

import (
	"fmt"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"mirador/sir"
)

// Entries returns, for a region inside a function, the addresses that Inside found. For a function it
// returns the single address that each execution passes once: see entered.
func (im *Image) Entries(r *sir.Region) ([]uint64, error) {
	if c := r.Code; c != nil {
		return c.Entries, refusal(r, c.Uncounted)
	}
	addr, err := im.entered(r)
	if err != nil {
		return nil, err
	}
	return []uint64{addr}, nil
}

// entered returns the address that each execution of the function passes exactly once, before
// the function changes the stack pointer. That is the function's entry, except in Go: most Go
// functions first compare the stack pointer with a limit, and restart at the entry after the
// runtime has moved the goroutine to a larger stack. For these functions entered returns the
// instruction after that check.
//
// The error is a *CodeError if a function restarts but its check is not recognised, because
// counts at its entry would be wrong.
func (im *Image) entered(unit *sir.Region) (uint64, error) {
	if im.elf.Section(".gopclntab") == nil {
		return unit.Entry, nil
	}
	f, ok := im.find(unit.Entry)
	if !ok || f.addr != unit.Entry {
		return 0, &CodeError{unit.Name, unit.Entry, "no function of " + im.name + " begins"}
	}
	code, err := im.code(f.addr, f.size)
	if err != nil {
		return 0, err
	}
	behind, grow := stackCheck(code, f.addr)
	if grow != 0 && beginsAgain(code, f.addr, grow) {
		if jumpsTo(code, f.addr, behind) {
			return 0, &CodeError{f.name, behind, "a branch leads behind the stack check, so executions cannot be distinguished from iterations of a loop"}
		}
		return behind, nil
	}
	if at, calls := im.growsStack(code, f.addr); calls {
		return 0, &CodeError{f.name, at, "the function restarts after its stack has grown, and its stack check is not recognised"}
	}
	return f.addr, nil
}

// jumpsTo reports whether a jump in the code of a function leads to an address.
func jumpsTo(code []byte, begin, to uint64) (jumps bool) {
	for at := 0; at < len(code); {
		inst, ok := decodeFlow(code[at:])
		if !ok {
			return false // assembler code
		}
		at += inst.Len
		jumps = jumps || inst.direct && isJump(inst.Op) && begin+uint64(at)+uint64(int64(inst.distance)) == to
	}
	return jumps
}

// longestStackCheck is the maximum number of instructions of the check: mov, sub, jb, mov,
// cmp, jbe.
const longestStackCheck = 8

// stackCheck finds the stack check at the beginning of a function: the address after it, and
// the target of its branch to the code that grows the stack; 0 if there is no check.
func stackCheck(code []byte, begin uint64) (behind, grow uint64) {
	compared := false
	at := 0
	for range longestStackCheck {
		inst, ok := decodeInstruction(code[at:])
		if !ok {
			return 0, 0
		}
		at += inst.Len
		switch inst.Op {
		case x86asm.CMP:
			compared = compared || comparesLimit(inst)
		case x86asm.JBE:
			to, direct := inst.Args[0].(x86asm.Rel)
			if !compared || !direct {
				return 0, 0
			}
			return begin + uint64(at), begin + uint64(at) + uint64(int64(to))
		case x86asm.MOV, x86asm.LEA, x86asm.SUB, x86asm.JB, x86asm.JE:
			if to, ok := inst.Args[0].(x86asm.Reg); ok && to == x86asm.RSP {
				return 0, 0
			}
		default:
			return 0, 0
		}
	}
	return 0, 0
}

// comparesLimit reports whether an instruction compares with a stack limit: stackguard0 and
// stackguard1 have these offsets in runtime.g.
func comparesLimit(inst x86asm.Inst) bool {
	for _, arg := range inst.Args[:2] {
		if m, ok := arg.(x86asm.Mem); ok && m.Index == 0 && (m.Disp == 0x10 || m.Disp == 0x18) {
			return true
		}
	}
	return false
}

// longestGrow is the maximum number of instructions of the code that grows the stack: it saves
// the arguments, calls the runtime, and restores the arguments.
const longestGrow = 80

// beginsAgain reports whether the code at from makes a call and then jumps to the beginning of
// the function.
func beginsAgain(code []byte, begin, from uint64) bool {
	if from < begin || from-begin >= uint64(len(code)) {
		return false
	}
	called := false
	at := int(from - begin)
	for range longestGrow {
		inst, ok := decodeInstruction(code[at:])
		if !ok {
			return false
		}
		at += inst.Len
		switch inst.Op {
		case x86asm.CALL:
			called = true
		case x86asm.JMP:
			to, direct := inst.Args[0].(x86asm.Rel)
			return called && direct && int64(at)+int64(to) == 0
		case x86asm.RET:
			return false
		}
	}
	return false
}

// growsStack finds a call of the runtime's functions that grow the stack.
func (im *Image) growsStack(code []byte, begin uint64) (at uint64, calls bool) {
	for n := 0; n < len(code); {
		inst, ok := decodeFlow(code[n:])
		if !ok {
			return 0, false // assembler code, which has no such stack check
		}
		n += inst.Len
		if inst.Op != x86asm.CALL || !inst.direct {
			continue
		}
		if f, ok := im.find(begin + uint64(n) + uint64(int64(inst.distance))); ok && slices.Contains(growing, f.name) {
			return begin + uint64(n-inst.Len), true
		}
	}
	return 0, false
}

// growing are the functions of Go's runtime that grow the stack of their caller.
var growing = growers()

func growers() (names []string) {
	for _, name := range []string{"morestack", "morestack_noctxt"} {
		names = append(names, fmt.Sprintf("runtime.%s", name), fmt.Sprintf("runtime.%s.abi0", name))
	}
	return names
}
