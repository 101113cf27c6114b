// Package relocate moves single x86-64 instructions: it makes a copy for another address
// that has the same effect as the instruction, and then continues after the original.
//
// Only omis/host, omis/code, omis/linux and omis/place may import it. Its functions have
// no side effects.
package relocate

import (
	"encoding/binary"
	"fmt"
	"math"

	"golang.org/x/arch/x86/x86asm"
)

// MaxLen is the length of the longest x86 instruction.
const MaxLen = 15

// MaxCopy is an upper bound of the length of a copy.
const MaxCopy = 48

// Error is the reason why an instruction cannot be moved.
type Error struct {
	Addr uint64
	Why  string
}

func (e *Error) Error() string {
	return fmt.Sprintf("the instruction at %#x cannot be moved for a breakpoint: %s", e.Addr, e.Why)
}

// Copy is an instruction for another address.
type Copy struct {
	Code   []byte // code for the address given to Instruction
	Length int    // of the displaced instruction
}

// Instruction relocates the first instruction of code, which is at from, to the address
// to. After the copy, execution continues where it would after the original.
func Instruction(code []byte, from, to uint64) (Copy, error) {
	if n := landingPad(code); n > 0 {
		r := relocation{from: from, to: to, length: n}
		r.emit(code[:n]...)
		return r.finish(true)
	}
	inst, err := Decode(code)
	if err != nil {
		return Copy{}, &Error{from, fmt.Sprintf("it is unknown (% x)", clip(code, 8))}
	}
	r := relocation{from: from, to: to, length: inst.Len, inst: inst, code: code[:inst.Len]}
	return r.instruction()
}

// landingPad returns the length of endbr64 or endbr32, 0 if code starts with neither.
func landingPad(code []byte) int {
	if len(code) >= 4 && code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && (code[3] == 0xfa || code[3] == 0xfb) {
		return 4
	}
	return 0
}

type relocation struct {
	from, to uint64
	length   int
	inst     x86asm.Inst
	code     []byte
	out      []byte
	err      error
}

func (r *relocation) emit(b ...byte)  { r.out = append(r.out, b...) }
func (r *relocation) here() uint64    { return r.to + uint64(len(r.out)) }
func (r *relocation) next() uint64    { return r.from + uint64(r.length) }
func (r *relocation) emit32(v uint32) { r.out = binary.LittleEndian.AppendUint32(r.out, v) }
func (r *relocation) fail(f string, a ...any) {
	if r.err == nil {
		r.err = &Error{r.from, fmt.Sprintf(f, a...)}
	}
}

// emitRel32 appends the distance from the end of these four bytes to target.
func (r *relocation) emitRel32(target uint64) {
	d := int64(target - (r.here() + 4))
	if d < math.MinInt32 || d > math.MaxInt32 {
		r.fail("%#x is out of reach of its new place %#x", target, r.to)
	}
	r.emit32(uint32(d))
}

func (r *relocation) jump(target uint64) {
	r.emit(0xe9)
	r.emitRel32(target)
}

// finish ends the copy; goesOn says that execution can reach its end.
func (r *relocation) finish(goesOn bool) (Copy, error) {
	if goesOn {
		r.jump(r.next())
	}
	if r.err != nil {
		return Copy{}, r.err
	}
	return Copy{Code: r.out, Length: r.length}, nil
}

func (r *relocation) instruction() (Copy, error) {
	switch r.inst.Op {
	case x86asm.INT, x86asm.ICEBP, x86asm.INTO:
		return Copy{}, &Error{r.from, "it is a breakpoint or trap already"}
	case x86asm.HLT, x86asm.UD1, x86asm.UD2, x86asm.XBEGIN:
		return Copy{}, &Error{r.from, fmt.Sprintf("%v does not work elsewhere", r.inst.Op)}
	case x86asm.CALL:
		return r.call()
	case x86asm.RET:
		r.emit(r.code...)
		return r.finish(false)
	}
	if rel, ok := r.inst.Args[0].(x86asm.Rel); ok {
		return r.branch(r.next() + uint64(int64(rel)))
	}
	r.emitMemoryForm(r.code)
	return r.finish(r.inst.Op != x86asm.JMP)
}

// emitMemoryForm appends code and adapts its rip-relative displacement, if any, to the
// new place.
func (r *relocation) emitMemoryForm(code []byte) {
	if r.inst.PCRel == 0 {
		r.emit(code...)
		return
	}
	if r.inst.PCRel != 4 {
		r.fail("it has a relative address of %d bytes", r.inst.PCRel)
		return
	}
	off := r.inst.PCRelOff
	target := r.next() + uint64(int64(int32(binary.LittleEndian.Uint32(code[off:]))))
	d := int64(target - (r.here() + uint64(len(code))))
	if d < math.MinInt32 || d > math.MaxInt32 {
		r.fail("its operand at %#x is out of reach of its new place %#x", target, r.to)
	}
	at := len(r.out)
	r.emit(code...)
	binary.LittleEndian.PutUint32(r.out[at+off:], uint32(d))
}

// branch encodes relative jumps in their longest form.
func (r *relocation) branch(target uint64) (Copy, error) {
	switch op := r.code[len(r.code)-1-r.inst.PCRel]; {
	case r.inst.Op == x86asm.JMP:
		r.jump(target)
		return r.finish(false)
	case op >= 0xe0 && op <= 0xe3:
		// loop and jcxz have only a short form: let them jump over a jump.
		r.emit(r.code[:len(r.code)-1]...)
		r.emit(0x02, 0xeb, 0x05)
		r.jump(target)
		return r.finish(true)
	case op >= 0x70 && op <= 0x8f:
		r.emit(0x0f, 0x80|op&0x0f)
		r.emitRel32(target)
		return r.finish(true)
	}
	return Copy{}, &Error{r.from, fmt.Sprintf("%v is a branch of unknown form", r.inst.Op)}
}

// call pushes the return address of the original place and jumps, so that the callee
// returns there: no return address on a stack ever points to a copy.
func (r *relocation) call() (Copy, error) {
	if rel, ok := r.inst.Args[0].(x86asm.Rel); ok {
		r.pushReturnAddress()
		r.jump(r.next() + uint64(int64(rel)))
		return r.finish(false)
	}
	i := opcodeIndex(r.code)
	if r.code[i] != 0xff || r.code[i+1]>>3&7 != 2 {
		return Copy{}, &Error{r.from, "it is a far call"}
	}
	if usesStackPointer(r.inst.Args[0]) {
		return Copy{}, &Error{r.from, "it is a call through the stack pointer"}
	}
	r.pushReturnAddress()
	jmp := append([]byte(nil), r.code...)
	jmp[i+1] = jmp[i+1]&^(7<<3) | 4<<3 // ff /2 is call, ff /4 is jmp
	r.emitMemoryForm(jmp)
	return r.finish(false)
}

// pushReturnAddress emits push imm32; movl imm32, 4(%rsp), which changes no register and
// no flag.
func (r *relocation) pushReturnAddress() {
	r.emit(0x68)
	r.emit32(uint32(r.next()))
	r.emit(0xc7, 0x44, 0x24, 0x04)
	r.emit32(uint32(r.next() >> 32))
}

// opcodeIndex skips the legacy and REX prefixes.
func opcodeIndex(code []byte) int {
	for i, b := range code {
		switch {
		case b == 0x66, b == 0x67, b == 0xf2, b == 0xf3, b == 0x2e, b == 0x3e, b == 0x64, b == 0x65, b&0xf0 == 0x40:
		default:
			return i
		}
	}
	return 0
}

func usesStackPointer(a x86asm.Arg) bool {
	switch a := a.(type) {
	case x86asm.Reg:
		return a == x86asm.RSP
	case x86asm.Mem:
		return a.Base == x86asm.RSP
	}
	return false
}

func clip(b []byte, n int) []byte { return b[:min(n, len(b))] }

// CallLength returns the length of the call instruction at the beginning of code, 0 if
// there is another instruction.
func CallLength(code []byte) int {
	inst, err := x86asm.Decode(code, 64)
	if err != nil || inst.Op != x86asm.CALL {
		return 0
	}
	return inst.Len
}
