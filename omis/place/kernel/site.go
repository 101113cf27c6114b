//go:build linux && amd64

package kernel

import (
	"bytes"
	"fmt"
	"os"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis"
	"mirador/omis/code/x86/landing"
	"mirador/omis/host/proc"
	"mirador/omis/program"
)

// site is a place for a uprobe: an address of a process, which is an offset of a file.
type site struct {
	asked  uint64 // the requested address; addr may be behind the landing pad there
	addr   uint64
	path   string // a path by which the kernel finds the file
	file   string // the path in the process's list of mappings
	offset uint64
	code   []byte // the instruction
	quick  bool   // the kernel emulates the instruction
	shared bool   // another tool has a uprobe there
}

// survey examines the code of one process at many addresses.
type survey struct {
	pid    int
	codes  *landing.Catalog
	target *target // nil: we have no uprobes in the process
	maps   proc.Mappings
	memory pager
	files  map[uint64]*mapped // by the address where they are mapped
	check  func(addr uint64) error
	nops   func() error // reports why no uprobe may be at a nop of five bytes; nil: uprobes may be there
}

// mapped is a file with code of the process.
type mapped struct {
	path  string // a path by which the kernel finds the file
	file  *os.File
	bytes pager
	err   error

	module *landing.Module // nil: not needed yet
}

func newSurvey(pid int, codes *landing.Catalog, t *target) (*survey, error) {
	maps, err := proc.Maps(pid)
	if err != nil {
		return nil, err
	}
	read := func(b []byte, addr uint64) (int, error) { return proc.ReadMemory(pid, addr, b) }
	return &survey{pid: pid, codes: codes, target: t, maps: maps, memory: pager{read: read}, files: make(map[uint64]*mapped)}, nil
}

// siteFor returns the site of a uprobe, or an error if no uprobe may be set at the address.
func (sv *survey) siteFor(addr uint64) (site, error) {
	if err := sv.check(addr); err != nil {
		return site{}, program.Refuse(err)
	}
	s, err := sv.site(addr)
	if err != nil && s.hasUprobe(sv) {
		s.shared, err = true, nil
	}
	if err == nil {
		err = sv.spoils(&s)
	}
	return s, err
}

// site does what siteFor does, but makes only the checks that depend on the instruction and its mapping.
func (sv *survey) site(addr uint64) (site, error) {
	m, ok := sv.maps.At(addr)
	switch {
	case !ok || !m.Exec || !m.Private:
		// The message need not say more: the placement that is tried next reports what is wrong with the
		// address.
		return site{}, &program.Refusal{Why: fmt.Sprintf("process %d has no code at %#x", sv.pid, addr)}
	case m.Inode == 0:
		return site{}, &program.Refusal{Why: fmt.Sprintf("the code at %#x is of no file (generated at run time, or the kernel's own), and uprobes stand in files", addr)}
	case m.Write:
		return site{}, &program.Refusal{Why: fmt.Sprintf("the code at %#x may be written to by the program itself, and the kernel sets no uprobes there", addr)}
	}
	f := sv.files[m.Start]
	if f == nil {
		f = &mapped{}
		f.open(sv.pid, m)
		f.bytes.read = func(b []byte, at uint64) (int, error) { return f.file.ReadAt(b, int64(at)) }
		sv.files[m.Start] = f
	}
	if f.err != nil {
		return site{}, program.Refuse(f.err)
	}
	s := site{asked: addr, addr: addr, path: f.path, file: m.Path, offset: addr - m.Start + m.Offset}
	err := s.compare(sv, f)
	if err == nil && !s.quick {
		if behind, ok := sv.behindPad(s, m, f); ok {
			return behind, nil
		}
	}
	return s, err
}

// runtime returns the Go runtime of the module at an address, nil for other code.
func (sv *survey) runtime(addr uint64) *landing.Runtime {
	m, ok := sv.maps.At(addr)
	if !ok || m.Inode == 0 {
		return nil
	}
	r, err := sv.codes.Runtime(sv.pid, m, addr)
	if err != nil {
		return nil // no uprobe can be set there either
	}
	return r
}

// times reports whether a program begins or ends intervals.
func times(p program.Program) bool { return slices.ContainsFunc(p, program.Op.Times) }

// open opens the mapped file, even if it was deleted or is in another mount namespace.
func (f *mapped) open(pid int, m proc.Mapping) {
	if f.file, f.err = proc.OpenImage(pid, m); f.err != nil {
		f.err = fmt.Errorf("cannot open %s, which the process has its code from: %w", m.Path, f.err)
		return
	}
	f.path = f.file.Name()
}

// close closes the files.
func (sv *survey) close() {
	for _, f := range sv.files {
		if f.file != nil {
			f.file.Close()
		}
	}
}

// compare reads the instruction and checks that the process runs the code of the file. If it does not,
// another tool has set a breakpoint or a patch there, which must not be disturbed.
func (s *site) compare(sv *survey, f *mapped) error {
	var file, memory [16]byte
	n := f.bytes.at(file[:], s.offset)
	if n == 0 {
		return &program.Refusal{Why: fmt.Sprintf("%s has no code at %#x", s.file, s.offset)}
	}
	if why := Unsuited(file[:n]); why != "" {
		return &program.Refusal{Why: fmt.Sprintf("no uprobe may be on the instruction at %#x (% x): %s", s.addr, file[:min(n, 8)], why)}
	}
	length, quick := measure(file[:n])
	s.code, s.quick = bytes.Clone(file[:length]), quick
	if sv.target != nil && sv.target.sites[s.addr].count > 0 {
		return nil
	}
	if n := sv.memory.at(memory[:length], s.addr); n < length {
		return omis.Errorf(omis.OSError, "cannot read the code of process %d at %#x", sv.pid, s.addr)
	}
	if !bytes.Equal(memory[:length], file[:length]) {
		return &program.Refusal{Why: fmt.Sprintf("the code at %#x has been changed: a breakpoint, a uprobe or a patch stands there", s.addr)}
	}
	return nil
}

// pager reads memory by pages and keeps them, because consecutive addresses are often on one page.
type pager struct {
	read  func(b []byte, at uint64) (int, error)
	pages map[uint64][]byte
}

const pageSize = 4096

// at reads memory into buf, and returns how many bytes it could read.
func (p *pager) at(buf []byte, at uint64) (n int) {
	for n < len(buf) {
		page := p.page((at + uint64(n)) / pageSize)
		from := min((at+uint64(n))%pageSize, uint64(len(page)))
		if from == uint64(len(page)) {
			break
		}
		n += copy(buf[n:], page[from:])
	}
	return n
}

func (p *pager) page(number uint64) []byte {
	if p.pages == nil {
		p.pages = make(map[uint64][]byte)
	}
	page, known := p.pages[number]
	if !known {
		page = make([]byte, pageSize)
		n, _ := p.read(page, number*pageSize) // what cannot be read is treated as not there
		page = page[:n]
		p.pages[number] = page
	}
	return page
}

// measure returns the length of an instruction, 0 if it is unknown, and whether the kernel emulates it at a
// uprobe (arch/x86/kernel/uprobes.c). The kernel single-steps a thread over a copy of other instructions.
func measure(code []byte) (length int, quick bool) {
	if bytes.HasPrefix(code, []byte{0xf3, 0x0f, 0x1e, 0xfa}) || bytes.HasPrefix(code, []byte{0xf3, 0x0f, 0x1e, 0xfb}) {
		return 4, false // endbr64, endbr32
	}
	inst, err := x86asm.Decode(code, 64)
	// The decoder returns Op(0) without an error for instructions that its tables lack.
	if err != nil || inst.Op == 0 {
		return 0, false
	}
	switch inst.Op {
	case x86asm.NOP: // also 66 90, but not the nops with an operand and a prefix
		return inst.Len, !bytes.HasPrefix(code, []byte{0x66, 0x0f})
	case x86asm.PUSH:
		_, register := inst.Args[0].(x86asm.Reg)
		return inst.Len, register
	case x86asm.JMP, x86asm.CALL:
		_, direct := inst.Args[0].(x86asm.Rel)
		return inst.Len, direct
	case x86asm.JA, x86asm.JAE, x86asm.JB, x86asm.JBE, x86asm.JE, x86asm.JG, x86asm.JGE, x86asm.JL, x86asm.JLE,
		x86asm.JNE, x86asm.JNO, x86asm.JNP, x86asm.JNS, x86asm.JO, x86asm.JP, x86asm.JS:
		return inst.Len, true
	}
	return inst.Len, false
}

// spoilt returns what the kernel does wrong with an instruction that has a uprobe, "" if nothing is known
// (arch/x86/kernel/uprobes.c of Linux 6.18).
//
// The kernel ignores VEX, EVEX and XOP prefixes when it decides how to execute an instruction. It jumps for
// vmovdqu %ymm0,(%rdi), whose opcode is that of jg, and stores nothing; it pushes a word for vxorps, and
// does nothing for vzeroupper. A thread that steps over pushf pushes its flags with the trap flag set, and
// gets SIGTRAP when it restores them. The kernel also ignores the REX prefix that makes xchg %rax,%r8 of a
// nop.
func spoilt(code []byte) string {
	const prefixed = "the kernel takes instructions with a VEX, EVEX or XOP prefix for others"
	var rex byte
	for i, b := range code {
		switch b {
		case 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f:
			rex = b
			continue
		case 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3:
			continue
		case 0xc4, 0xc5, 0x62:
			return prefixed
		case 0x8f: // pop, unless the opcode field of the next byte is not 0
			if i+1 < len(code) && code[i+1]&0x38 != 0 {
				return prefixed
			}
			return ""
		case 0x90:
			if rex&1 != 0 {
				return "the kernel takes it for a nop"
			}
		case 0x9c:
			return "the flags that it pushes there contain the trap flag, which ends the program when it restores them"
		}
		return ""
	}
	return ""
}

// Kinds of places, which differ in the cost of a hit.
const (
	Emulated = "emulated" // the kernel emulates the instruction
	Stepped  = "stepped"  // the kernel single-steps the thread over a copy of the instruction
)

// Costs of a hit in nanoseconds, measured on a virtual machine with a Zen 4 processor. Exceptions cost less
// without a hypervisor.
const (
	quickCost = 650
	slowCost  = 9100
)

// kindAdded returns a suffix for the kind of a place, if the program does something that takes longer than
// to count. To append a record or to fill a bucket takes little compared with reading the time.
func kindAdded(p program.Program) string {
	if p.Traces() && !slices.ContainsFunc(p, program.Op.Times) {
		return ", traced"
	}
	return ""
}

// verdict returns the verdict on a program at the site. added is its kindAdded.
func (s *site) verdict(added string) program.Verdict {
	v := program.Verdict{
		Name: Name, Where: "in the kernel, at a uprobe; no thread is held", Cost: quickCost,
		Why: "its actions only count and measure time", Kind: Emulated,
	}
	if s.addr != s.asked {
		v.Where = fmt.Sprintf("in the kernel, at a uprobe behind the landing pad, at %#x; no thread is held", s.addr)
	}
	if !s.quick {
		v.Cost, v.Kind = slowCost, Stepped
		v.Why += "; the kernel has to step over the instruction there, which it cannot emulate"
	}
	if s.shared {
		v.Why += "; another tool's uprobe stands there, and the kernel serves both"
	}
	v.Kind += added
	return v
}
