//go:build linux && amd64

package kernel

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis"
	"mirador/omis/linux/proc"
)

// site is where a uprobe stands: at an address of a process, which is an offset of a
// file.
type site struct {
	addr   uint64
	path   string // what the kernel finds the file by
	file   string // what people call it
	offset uint64
	code   []byte // the instruction
	quick  bool   // the kernel emulates it
}

// findSite finds the place for a uprobe. ours tells that one of ours stands there.
func findSite(pid int, addr uint64, ours bool) (site, error) {
	maps, err := proc.Maps(pid)
	if err != nil {
		return site{}, err
	}
	m, ok := maps.At(addr)
	switch {
	case !ok || !m.Exec || !m.Private:
		// What is wrong with it is for the dearer placement to say.
		return site{}, &omis.Refusal{Why: fmt.Sprintf("process %d has no code at %#x", pid, addr)}
	case m.Inode == 0:
		return site{}, &omis.Refusal{Why: fmt.Sprintf("the code at %#x is of no file (generated at run time, or the kernel's own), and uprobes stand in files", addr)}
	case m.Write:
		return site{}, &omis.Refusal{Why: fmt.Sprintf("the code at %#x may be written to by the program itself, and the kernel sets no uprobes there", addr)}
	}
	s := site{addr: addr, file: m.Path, offset: addr - m.Start + m.Offset}
	f, err := s.open(pid, m)
	if err != nil {
		return s, &omis.Refusal{Why: err.Error()}
	}
	defer f.Close()
	return s, s.compare(pid, f, ours)
}

// open opens the mapped file, also one that was deleted or lies in another mount
// namespace.
func (s *site) open(pid int, m proc.Mapping) (*os.File, error) {
	s.path = fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, m.Start, m.End)
	f, err := os.Open(s.path)
	if err == nil {
		return f, nil
	}
	// Links of map_files take CAP_CHECKPOINT_RESTORE.
	s.path = fmt.Sprintf("/proc/%d/root%s", pid, m.Path)
	if f, err = os.Open(s.path); err != nil {
		return nil, fmt.Errorf("cannot open %s, which the code at %#x is of: %w", m.Path, s.addr, err)
	}
	info, err := f.Stat()
	if err == nil && info.Sys().(*syscall.Stat_t).Ino == m.Inode {
		return f, nil
	}
	f.Close()
	return nil, fmt.Errorf("%s is not the file any more that process %d runs (the monitor would need CAP_CHECKPOINT_RESTORE to get at that)", m.Path, pid)
}

// compare makes sure that the process runs what stands in the file: neither a
// breakpoint nor a patch of somebody else may be disturbed.
func (s *site) compare(pid int, f io.ReaderAt, ours bool) error {
	var file, memory [16]byte
	n, err := f.ReadAt(file[:], int64(s.offset))
	if n == 0 {
		return &omis.Refusal{Why: fmt.Sprintf("cannot read %s: %v", s.file, err)}
	}
	length, quick := measure(file[:n])
	if length == 0 {
		return &omis.Refusal{Why: fmt.Sprintf("the instruction at %#x is not known (% x)", s.addr, file[:min(n, 8)])}
	}
	s.code, s.quick = file[:length], quick
	if ours {
		return nil
	}
	if n, err := proc.ReadMemory(pid, s.addr, memory[:length]); err != nil || n < length {
		return omis.Errorf(omis.OSError, "cannot read the code of process %d at %#x: %v", pid, s.addr, err)
	}
	if !bytes.Equal(memory[:length], file[:length]) {
		return &omis.Refusal{Why: fmt.Sprintf("the code at %#x has been changed: a breakpoint, a uprobe or a patch stands there", s.addr)}
	}
	return nil
}

// measure is the length of an instruction, 0 where it is not known, and whether the
// kernel emulates it at a uprobe (arch/x86/kernel/uprobes.c): then the thread need not
// be made to execute a copy step by step.
func measure(code []byte) (length int, quick bool) {
	if bytes.HasPrefix(code, []byte{0xf3, 0x0f, 0x1e, 0xfa}) || bytes.HasPrefix(code, []byte{0xf3, 0x0f, 0x1e, 0xfb}) {
		return 4, false // endbr64, endbr32
	}
	inst, err := x86asm.Decode(code, 64)
	// Op(0) without an error is what the decoder answers on instructions its tables lack.
	if err != nil || inst.Op == 0 {
		return 0, false
	}
	switch inst.Op {
	case x86asm.NOP, x86asm.PUSH:
		_, register := inst.Args[0].(x86asm.Reg)
		return inst.Len, inst.Op == x86asm.NOP || register
	case x86asm.JMP, x86asm.CALL:
		_, direct := inst.Args[0].(x86asm.Rel)
		return inst.Len, direct
	case x86asm.JA, x86asm.JAE, x86asm.JB, x86asm.JBE, x86asm.JE, x86asm.JG, x86asm.JGE, x86asm.JL, x86asm.JLE,
		x86asm.JNE, x86asm.JNO, x86asm.JNP, x86asm.JNS, x86asm.JO, x86asm.JP, x86asm.JS:
		return inst.Len, true
	}
	return inst.Len, false
}

// Kinds of places, which differ in what a hit costs.
const (
	Emulated = "emulated" // the kernel does itself what the instruction does
	Stepped  = "stepped"  // the thread executes a copy of it, and comes back to the kernel
)

// Costs of a hit, in nanoseconds, as measured on a Zen 4 virtual machine; exceptions
// are less dear on bare metal.
const (
	quickCost = 650
	slowCost  = 9100
)

func (s *site) verdict() omis.Verdict {
	v := omis.Verdict{
		Name: Name, Where: "in the kernel, at a uprobe; nobody is held", Cost: quickCost,
		Why: "its actions only count and measure time", Kind: Emulated,
	}
	if !s.quick {
		v.Cost, v.Kind = slowCost, Stepped
		v.Why += "; the kernel has to step over the instruction there, which it cannot emulate"
	}
	return v
}
