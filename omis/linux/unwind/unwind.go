//go:build linux && amd64

package unwind

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/go-delve/delve/pkg/dwarf/frame"
	"github.com/go-delve/delve/pkg/dwarf/op"
	"golang.org/x/sys/unix"

	"mirador/omis/node"
)

// DWARF numbers of the registers (System V ABI for x86-64).
const (
	rbp       = 6
	rsp       = 7
	rip       = 16
	registers = 17
)

// maxFrames ends the walk of a stack that is cyclic.
const maxFrames = 100_000

// callFrameCFA pushes the canonical frame address, with which the stack of a register
// expression must begin; the evaluator does not push it.
const callFrameCFA = byte(op.DW_OP_call_frame_cfa)

// Reader reads the memory of the thread's process.
type Reader func(buf []byte, addr uint64) (int, error)

// Backtrace walks the stack of a thread from its registers, up to depth frames (0: all).
// With an error it returns the frames found before.
func (l *Layout) Backtrace(regs *unix.PtraceRegs, read Reader, depth int) (frames []node.Frame, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed unwind tables: %v", p)
		}
	}()
	if depth <= 0 {
		depth = maxFrames
	}
	w := walk{layout: l, read: read, regs: dwarfRegisters(regs), exact: true}
	for len(frames) < depth {
		pc := w.regs.PC()
		if pc == 0 {
			break
		}
		cfa, more := w.step()
		frames = append(frames, node.Frame{PC: pc, FP: cfa})
		if !more {
			break
		}
	}
	return frames, nil
}

func dwarfRegisters(r *unix.PtraceRegs) *op.DwarfRegisters {
	values := []uint64{
		r.Rax, r.Rdx, r.Rcx, r.Rbx, r.Rsi, r.Rdi, r.Rbp, r.Rsp,
		r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15, r.Rip,
	}
	regs := make([]*op.DwarfRegister, registers)
	for i, v := range values {
		regs[i] = op.DwarfRegisterFromUint64(v)
	}
	return newRegisters(regs)
}

func newRegisters(regs []*op.DwarfRegister) *op.DwarfRegisters {
	return op.NewDwarfRegisters(0, regs, binary.LittleEndian, rip, rsp, rbp, 0)
}

// walk is the state of a stack walk, at one frame.
type walk struct {
	layout *Layout
	read   Reader
	regs   *op.DwarfRegisters
	exact  bool // pc is the interrupted instruction, not a return address
}

// step goes to the caller's frame. It returns the canonical frame address of the frame
// that it leaves, and whether there is a caller.
func (w *walk) step() (cfa uint64, more bool) {
	pc := w.regs.PC()
	if !w.exact {
		// A call may be the last instruction of its function, and then the return address
		// belongs to the next function.
		pc--
	}
	context, signal, ok := w.context(pc)
	switch {
	case !ok && w.exact && w.stepFromLeaf():
		return w.regs.SP(), true
	case !ok:
		return w.stepByFramePointer()
	}
	cfa, ok = w.cfa(context)
	if !ok {
		return 0, false
	}
	before := w.regs.SP()
	w.regs.CFA = int64(cfa)
	caller, ok := w.caller(context, cfa)
	if !ok {
		return cfa, false
	}
	w.regs, w.exact = caller, signal
	// The caller's frame has a higher address, except after a signal, which may have its
	// own stack.
	return cfa, signal || cfa > before
}

// context finds the unwind rules for pc. signal reports that it is a signal frame, whose
// caller was interrupted and did not call.
func (w *walk) context(pc uint64) (context *frame.FrameContext, signal, ok bool) {
	m, ok := w.layout.module(pc)
	if !ok {
		return nil, false, false
	}
	entry, err := m.find(pc - m.bias)
	if err != nil {
		return nil, false, false
	}
	context, err = entry.EstablishFrame(pc - m.bias)
	if err != nil {
		return nil, false, false
	}
	return context, strings.Contains(entry.CIE.Augmentation, "S"), true
}

func (w *walk) cfa(context *frame.FrameContext) (uint64, bool) {
	switch rule := context.CFA; rule.Rule {
	case frame.RuleCFA:
		if w.regs.Reg(rule.Reg) == nil {
			return 0, false
		}
		return w.regs.Uint64Val(rule.Reg) + uint64(rule.Offset), true
	case frame.RuleExpression:
		v, _, err := op.ExecuteStackProgram(*w.regs, rule.Expression, pointerSize, op.ReadMemoryFunc(w.read))
		return uint64(v), err == nil
	}
	return 0, false
}

// caller computes the registers of the caller; ok is false if this is the outermost
// frame.
func (w *walk) caller(context *frame.FrameContext, cfa uint64) (*op.DwarfRegisters, bool) {
	regs := make([]*op.DwarfRegister, registers)
	for i := range regs {
		regs[i] = w.regs.Reg(uint64(i))
	}
	regs[rsp] = op.DwarfRegisterFromUint64(cfa)
	regs[rip] = nil
	for number, rule := range context.Regs {
		if number < registers {
			regs[number] = w.register(number, rule, cfa)
		}
	}
	return newRegisters(regs), regs[rip] != nil
}

// register computes one register of the caller, nil if it is unknown.
func (w *walk) register(number uint64, rule frame.DWRule, cfa uint64) *op.DwarfRegister {
	switch rule.Rule {
	case frame.RuleSameVal:
		return w.regs.Reg(number)
	case frame.RuleOffset:
		return w.load(cfa + uint64(rule.Offset))
	case frame.RuleValOffset:
		return op.DwarfRegisterFromUint64(cfa + uint64(rule.Offset))
	case frame.RuleRegister:
		return w.regs.Reg(rule.Reg)
	case frame.RuleExpression, frame.RuleValExpression:
		program := append([]byte{callFrameCFA}, rule.Expression...)
		v, _, err := op.ExecuteStackProgram(*w.regs, program, pointerSize, op.ReadMemoryFunc(w.read))
		switch {
		case err != nil:
			return nil
		case rule.Rule == frame.RuleValExpression:
			return op.DwarfRegisterFromUint64(uint64(v))
		}
		return w.load(uint64(v))
	}
	return nil
}

func (w *walk) load(addr uint64) *op.DwarfRegister {
	var b [pointerSize]byte
	if n, err := w.read(b[:], addr); err != nil || n < len(b) {
		return nil
	}
	return op.DwarfRegisterFromUint64(binary.LittleEndian.Uint64(b[:]))
}

// stepFromLeaf leaves code that has no unwind tables and has not changed the stack
// pointer, such as clone in the C library, whose table ends before the system call
// because it would be wrong in the new thread. It assumes that the word at the stack
// pointer is a return address if it follows a call instruction.
func (w *walk) stepFromLeaf() bool {
	sp := w.regs.SP()
	back := w.load(sp)
	if back == nil || !w.followsCall(back.Uint64Val) {
		return false
	}
	regs := make([]*op.DwarfRegister, registers)
	for i := range regs {
		regs[i] = w.regs.Reg(uint64(i))
	}
	regs[rip], regs[rsp] = back, op.DwarfRegisterFromUint64(sp+pointerSize)
	w.regs, w.exact = newRegisters(regs), false
	return true
}

// followsCall reports whether pc is in code after a call instruction: e8 with four
// bytes, or ff /2 with the operand that its ModRM byte requires.
func (w *walk) followsCall(pc uint64) bool {
	const longest = 7
	if m, ok := w.layout.maps.At(pc); !ok || !m.Exec {
		return false
	}
	var code [longest]byte
	if n, err := w.read(code[:], pc-longest); err != nil || n < longest {
		return false
	}
	if code[longest-5] == 0xe8 {
		return true
	}
	for n := 2; n <= longest; n++ {
		if code[longest-n] == 0xff && code[longest-n+1]>>3&7 == 2 {
			return true
		}
	}
	return false
}

// stepByFramePointer leaves code without unwind tables that saves rbp and the return
// address next to each other, as is the convention.
func (w *walk) stepByFramePointer() (cfa uint64, more bool) {
	if w.regs.Reg(rbp) == nil {
		return 0, false
	}
	fp, sp := w.regs.BP(), w.regs.SP()
	if fp < sp || fp > w.layout.StackEnd(sp) {
		return 0, false
	}
	saved, back := w.load(fp), w.load(fp+pointerSize)
	if saved == nil || back == nil {
		return 0, false
	}
	regs := make([]*op.DwarfRegister, registers)
	cfa = fp + 2*pointerSize
	regs[rbp], regs[rip], regs[rsp] = saved, back, op.DwarfRegisterFromUint64(cfa)
	w.regs, w.exact = newRegisters(regs), false
	return cfa, true
}
