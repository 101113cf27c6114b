//go:build linux && amd64

package patch

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mirador/omis/code/x86/landing"
)

// shapes are functions in assembler. The test requests code at the label of the function that ends
// in _at. want is the distance of the window before the label in bytes, or a part of the refusal.
var shapes = []struct{ name, code, want string }{
	{"long", "long_at: mov $1, %eax; ret", "-5"},
	{"short", "short_at: push %rbx; mov %rsp, %rbx; sub $16, %rsp; leave; ret", "-1"},
	{"epilogue", "nop; add $8, %rsp; pop %rbx; epilogue_at: ret; push %rax", "5"},
	{"padded", "xor %eax, %eax; jmp 1f; padded_at: ret; nopl 0(%rax,%rax,1); 1: mov $1, %eax; ret", "0"},
	{"crowded", "jmp crowded_at; crowded_at: ret; push %rax; ret", "execution leaves"},
	{"entered", "entered_at: xor %eax, %eax; 1: inc %eax; cmp $9, %eax; jl 1b; ret", "branch may lead"},
	{"head", "head_at: xor %eax, %eax; inc %eax; cmp $9, %eax; jl head_at; ret", "-2"},
	{"pad", "pad_at: endbr64; mov $1, %eax; ret", "-9"},
	{"loop", "loop_at: endbr64; 1: inc %eax; cmp $9, %eax; jl 1b; ret", "after its landing pad"},
	{"relative", "relative_at: xor %eax, %eax; 1: inc %eax; inc %ecx; ret; .section .rodata; 2: .long 1b - 2b; .text; lea 2b(%rip), %rax", "branch may lead"},
	{"absolute", "absolute_at: xor %eax, %eax; 1: inc %eax; inc %ecx; ret; .data; .balign 8; .quad 1b; .text", "branch may lead"},
	{"taken", "taken_at: xor %eax, %eax; 1: inc %eax; inc %ecx; lea 1b(%rip), %rax; ret", "branch may lead"},
	{"computed", "computed_at: xor %eax, %eax; inc %eax; inc %ecx; lea 1f(%rip), %rax; jmp *%rax; nop; 1: ret", "computes"},
	{"whole", "whole_at: mov $1, %eax; lea 1f(%rip), %rcx; jmp *%rcx; nop; 1: ret", "0"},
	{"waits", "xor %edi, %edi; waits_at: syscall; ret", "system call"},
	{"prefix", "je 1f; prefix_at: .byte 0xf0; 1: cmpxchg %rcx, (%rdi); ret", "branch may lead"},
	{"vector", "vector_at: vzeroupper; ret; nop; nop; nop", "-3"},
	{"within", "mov $1, %eax; .set within_at, . - 2; ret", "no instruction"},
	{"called", "called_at: mov %rdi, %rax; call long_at; ret", "-3"},
}

// stray is a function behind bytes outside of functions, ff e0 66, which look like a short branch into it: to its
// tenth byte. That is within an instruction, or the beginning of one.
const stray = `.balign 256, 0x90; jmp *%%rax; .byte 0x66, 0x0f, 0x1f, 0x44, 0, 0; .skip 88, 0x90
.globl %[1]s; .type %[1]s, @function; %[1]s: .cfi_startproc; %[2]s; ret; .cfi_endproc; .size %[1]s, .-%[1]s
`

// TestSurvey requests code in all shapes.
func TestSurvey(t *testing.T) {
	var source strings.Builder
	source.WriteString(".text\n")
	for _, s := range shapes {
		fmt.Fprintf(&source, ".balign 64, 0x90\n.globl %[1]s, %[1]s_at\n.type %[1]s, @function\n%[1]s: .cfi_startproc; %[2]s\n.cfi_endproc\n.size %[1]s, .-%[1]s\n", s.name, s.code)
	}
	fmt.Fprintf(&source, stray, "within_lea", "push %rbx; mov %edi, %ecx; lea 9(%rip), %rdx; inc %eax; inc %ecx")
	fmt.Fprintf(&source, stray, "behind_lea", "push %rbx; nop; lea 9(%rip), %rdx; inc %eax; inc %ecx")
	// A wrong symbol: its function would begin in the padding before another one.
	source.WriteString(".globl shifted; .type shifted, @function; .set shifted, short - 1; .size shifted, 14\n")
	dir := t.TempDir()
	file, object := filepath.Join(dir, "shapes.s"), filepath.Join(dir, "shapes.so")
	if err := os.WriteFile(file, []byte(source.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-shared", "-nostdlib", "-o", object, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	surveyor, labels := survey(t, object)
	for _, s := range shapes {
		addr := labels[s.name+"_at"]
		found, err := surveyor.find(addr)
		got := fmt.Sprint(int64(addr - found.Addr))
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != s.want || err != nil && !strings.Contains(got, s.want) {
			t.Errorf("%s: %s, want %s", s.name, got, s.want)
		}
	}
	for name, lands := range map[string]bool{"within_lea": false, "behind_lea": true} {
		begin, end := surveyor.bounds(labels[name])
		if got := surveyor.lands(surveyor.decoded(begin, end), begin+8, begin+13); got != lands || end-begin < 13 {
			t.Errorf("%s: a branch leads there: %v, want %v", name, got, lands)
		}
	}
	if begin, end := surveyor.bounds(labels["shifted"]); begin == end {
		t.Error("a function that only the symbols know is not found")
	}
	surveyor.Forget()
	surveyor.Bounds = func(addr uint64) (begin, end uint64) {
		if begin, end = labels["short"], labels["short"]+12; addr >= begin && addr < end {
			return begin, end
		}
		return 0, 0
	}
	if begin, end := surveyor.bounds(labels["shifted"]); begin != end {
		t.Errorf("a function is from %#x to %#x, although another one begins at %#x", begin, end, labels["short"])
	}
}

// survey reads a module as if it were mapped at its link address.
func survey(t *testing.T, object string) (*Surveyor, map[string]uint64) {
	t.Helper()
	f, err := os.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	file, err := elf.NewFile(f)
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	labels := make(map[string]uint64)
	for _, s := range symbols {
		labels[s.Name] = s.Value
	}
	for _, p := range file.Progs {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_X == 0 {
			continue
		}
		module, err := landing.Read(f, p.Off, p.Filesz)
		if err != nil {
			t.Fatal(err)
		}
		unknown := func(uint64) (begin, end uint64) { return 0, 0 }
		return &Surveyor{Module: module, Base: p.Vaddr, Bounds: unknown}, labels
	}
	t.Fatal("no code")
	return nil, nil
}
