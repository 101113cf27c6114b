//go:build linux && amd64

package unwind

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/go-delve/delve/pkg/dwarf/frame"
	"github.com/go-delve/delve/pkg/dwarf/op"
	"golang.org/x/sys/unix"

	"mirador/omis"
)

// DWARF numbers of the registers (System V ABI for x86-64).
const (
	rbp       = 6
	rsp       = 7
	rip       = 16
	registers = 17
)

// maxFrames ends a walk through a stack that has no end.
const maxFrames = 100_000

// callFrameCFA pushes the canonical frame address: register expressions start
// with it on their stack, which the evaluator leaves to its caller.
const callFrameCFA = byte(op.DW_OP_call_frame_cfa)

// Reader reads the memory of the thread's process.
type Reader func(buf []byte, addr uint64) (int, error)

// Backtrace walks the stack of a thread from its registers, up to depth frames
// (0: all). The frames found before an error are returned with it.
func (l *Layout) Backtrace(regs *unix.PtraceRegs, read Reader, depth int) (frames []omis.Frame, err error) {
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
		frames = append(frames, omis.Frame{PC: pc, FP: cfa})
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

// walk is at one frame of a stack.
type walk struct {
	layout *Layout
	read   Reader
	regs   *op.DwarfRegisters
	exact  bool // pc is where the frame is, not behind a call
}

// step goes to the caller's frame; it returns the canonical frame address of the
// frame it leaves, and whether there is a caller.
func (w *walk) step() (cfa uint64, more bool) {
	pc := w.regs.PC()
	if !w.exact {
		// A call may be the last instruction of its function: what lies behind
		// belongs to the next one.
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
	// Callers lie above, except behind a signal, which may have had its own stack.
	return cfa, signal || cfa > before
}

// context finds the unwind rules for pc. signal tells that it is a signal frame,
// whose caller was interrupted, not left by a call.
func (w *walk) context(pc uint64) (context *frame.FrameContext, signal, ok bool) {
	m, ok := w.layout.module(pc)
	if !ok {
		return nil, false, false
	}
	entry, err := m.entries.FDEForPC(pc - m.bias)
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

// caller computes the registers of the caller; false when this is the outermost
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

// register computes one register of the caller, nil where it is unknown.
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

// stepFromLeaf leaves code without unwind tables that has not touched the stack:
// clone of the C library ends its table before the system call, since what it
// says would be wrong in the new thread. That there is nothing but a return
// address on the stack is believed if a call stands before where it leads.
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

// followsCall tells whether pc is in code, behind a call instruction: e8 with
// four bytes, or ff /2 with what a ModRM byte asks for.
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

// stepByFramePointer walks code without unwind tables, which by convention
// saves rbp and the return address next to each other.
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
