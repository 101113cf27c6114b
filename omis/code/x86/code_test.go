package x86_test

import (
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/code/x86"
)

// at is the address of the code in tests.
const at = 0x7f0000001000

// TestInstructions compares the instructions with a disassembler's output, which omits
// factors and distances without effect, and does not name an index %riz.
func TestInstructions(t *testing.T) {
	for want, make := range map[string]func(c *x86.Code){
		"push %rcx":                    func(c *x86.Code) { c.Push(x86.RCX) },
		"push %r12":                    func(c *x86.Code) { c.Push(x86.R12) },
		"pop %rdi":                     func(c *x86.Code) { c.Pop(x86.RDI) },
		"pop %r8":                      func(c *x86.Code) { c.Pop(x86.R8) },
		"mov %rax,%rsi":                func(c *x86.Code) { c.Mov(x86.RSI, x86.RAX) },
		"mov %r9,%rbp":                 func(c *x86.Code) { c.Mov(x86.RBP, x86.R9) },
		"mov $0x12345678,%edx":         func(c *x86.Code) { c.MovImm(x86.RDX, 0x12345678) },
		"mov $0x1,%r10d":               func(c *x86.Code) { c.MovImm(x86.R10, 1) },
		"mov $0x123456789abcdef0,%rdx": func(c *x86.Code) { c.MovImm(x86.RDX, 0x123456789abcdef0) },
		"mov $-0x1,%r11":               func(c *x86.Code) { c.MovImm(x86.R11, 1<<64-1) },
		"mov (%rax),%rcx":              func(c *x86.Code) { c.Load(x86.RCX, x86.At(x86.RAX, 0)) },
		"mov (%rbp),%rcx":              func(c *x86.Code) { c.Load(x86.RCX, x86.At(x86.RBP, 0)) },
		"mov 0x8(%rsp),%rcx":           func(c *x86.Code) { c.Load(x86.RCX, x86.At(x86.RSP, 8)) },
		"mov -0x80(%r13),%r14":         func(c *x86.Code) { c.Load(x86.R14, x86.At(x86.R13, -0x80)) },
		"mov 0x12345(%r12,%riz),%rax":  func(c *x86.Code) { c.Load(x86.RAX, x86.At(x86.R12, 0x12345)) },
		"mov 0x80(%rsi,%rax),%rdx":     func(c *x86.Code) { c.Load(x86.RDX, x86.Sum(x86.RSI, x86.RAX, 0x80)) },
		"mov (%r13,%r9),%r8":           func(c *x86.Code) { c.Load(x86.R8, x86.Sum(x86.R13, x86.R9, 0)) },
		"mov %fs:,%rax":                func(c *x86.Code) { c.Load(x86.RAX, x86.FS(0)) },
		"mov %fs:0x2d0,%ecx":           func(c *x86.Code) { c.Load32(x86.RCX, x86.FS(0x2d0)) },
		"movzbl 0x6fb(%rip),%ecx":      func(c *x86.Code) { c.Load8(x86.RCX, x86.Abs(at+0x702)) },
		"mov %rdx,0x8(%rdi)":           func(c *x86.Code) { c.Store(x86.At(x86.RDI, 8), x86.RDX) },
		"mov %edi,(%rdx,%rax)":         func(c *x86.Code) { c.Store32(x86.Sum(x86.RDX, x86.RAX, 0), x86.RDI) },
		"movq $0x1,0x10(%rsi)":         func(c *x86.Code) { c.StoreImm(x86.At(x86.RSI, 16), 1) },
		"lea -0x80(%rsp),%rsp":         func(c *x86.Code) { c.Lea(x86.RSP, x86.At(x86.RSP, -128)) },
		"add %rcx,%rax":                func(c *x86.Code) { c.Do(x86.Add, x86.RAX, x86.RCX) },
		"imul %rdx,%rdi":               func(c *x86.Code) { c.Imul(x86.RDI, x86.RDX) },
		"imul 0x8(%rsp),%rdx":          func(c *x86.Code) { c.ImulMem(x86.RDX, x86.At(x86.RSP, 8)) },
		"or %rdx,%rax":                 func(c *x86.Code) { c.Do(x86.Or, x86.RAX, x86.RDX) },
		"sub $0x200,%rax":              func(c *x86.Code) { c.DoImm(x86.Sub, x86.RAX, 512) },
		"cmp $0x1,%rax":                func(c *x86.Code) { c.DoImm(x86.Cmp, x86.RAX, 1) },
		"and $0x1fff,%ecx":             func(c *x86.Code) { c.DoImm32(x86.And, x86.RCX, 0x1fff) },
		"add %fs:,%rax":                func(c *x86.Code) { c.DoLoad(x86.Add, x86.RAX, x86.FS(0)) },
		"cmp (%rcx),%eax":              func(c *x86.Code) { c.DoLoad32(x86.Cmp, x86.RAX, x86.At(x86.RCX, 0)) },
		"cmp 0xe00(%rsi,%rax),%rdx":    func(c *x86.Code) { c.DoLoad(x86.Cmp, x86.RDX, x86.Sum(x86.RSI, x86.RAX, 0xe00)) },
		"adc %rdx,0x58(%rsi)":          func(c *x86.Code) { c.DoStore(x86.Adc, x86.At(x86.RSI, 88), x86.RDX) },
		"adcq $0x0,0x48(%rsi)":         func(c *x86.Code) { c.DoStoreImm(x86.Adc, x86.At(x86.RSI, 72), 0) },
		"addq $0x12345678,0x8(%rcx)":   func(c *x86.Code) { c.DoStoreImm(x86.Add, x86.At(x86.RCX, 8), 0x12345678) },
		"cmpb $0x0,0xffffefff(%rip)":   func(c *x86.Code) { c.CmpByte(x86.Abs(at-0x1001+7), 0) },
		"xadd %rdi,0x80(%rcx)":         func(c *x86.Code) { c.FetchAdd(x86.At(x86.RCX, 0x80), x86.RDI) },
		"incq 0x40(%rcx)":              func(c *x86.Code) { c.Inc(x86.At(x86.RCX, 0x40)) },
		"dec %edi":                     func(c *x86.Code) { c.DecReg32(x86.RDI) },
		"movsxd %edx,%rdx":             func(c *x86.Code) { c.SignExtend(x86.RDX) },
		"movsxd %r9d,%r9":              func(c *x86.Code) { c.SignExtend(x86.R9) },
		"shl $0x2a,%rax":               func(c *x86.Code) { c.Shl(x86.RAX, 42) },
		"shl $0x10,%ecx":               func(c *x86.Code) { c.Shl32(x86.RCX, 16) },
		"shr $0x10,%rdi":               func(c *x86.Code) { c.Shr(x86.RDI, 16) },
		"shr %cl,%rax":                 func(c *x86.Code) { c.ShrByCL(x86.RAX) },
		"shl %cl,%rsi":                 func(c *x86.Code) { c.ShlByCL(x86.RSI) },
		"shld $0x18,%rax,%rdx":         func(c *x86.Code) { c.ShlDouble(x86.RDX, x86.RAX, 24) },
		"imul %r9,%rdx":                func(c *x86.Code) { c.Imul(x86.RDX, x86.R9) },
		"imul $0x3b9aca00,%rax,%rax":   func(c *x86.Code) { c.ImulImm(x86.RAX, 1e9) },
		"mulq 0x98(%rdi)":              func(c *x86.Code) { c.MulMem(x86.At(x86.RDI, 0x98)) },
		"call *%rax":                   func(c *x86.Code) { c.Call(x86.RAX) },
		"movups 0x10(%rsp),%xmm9":      func(c *x86.Code) { c.LoadVector(9, x86.At(x86.RSP, 16)) },
		"movups %xmm1,(%rsp)":          func(c *x86.Code) { c.StoreVector(x86.At(x86.RSP, 0), 1) },
		"movsbq 0x1c(%rsi),%rcx":       func(c *x86.Code) { c.LoadSigned8(x86.RCX, x86.At(x86.RSI, 28)) },
		"bsr %rdx,%rdi":                func(c *x86.Code) { c.HighestBit(x86.RDI, x86.RDX) },
		"not %rdx":                     func(c *x86.Code) { c.Not(x86.RDX) },
		"mul %rax":                     func(c *x86.Code) { c.Mul(x86.RAX) },
		"xor %r9d,%r9d":                func(c *x86.Code) { c.Zero(x86.R9) },
		"test %rdx,%rdx":               func(c *x86.Code) { c.Test(x86.RDX) },
		"cmpxchg %rdx,0x38(%rsi)":      func(c *x86.Code) { c.Swap(x86.At(x86.RSI, 0x38), x86.RDX) },
		"lock cmpxchg %rdi,(%rsi)":     func(c *x86.Code) { c.LockedSwap(x86.At(x86.RSI, 0), x86.RDI) },
		"lock addq $0x7,0x8(%rcx)": func(c *x86.Code) {
			c.Lock()
			c.DoStoreImm(x86.Add, x86.At(x86.RCX, 8), 7)
		},
		"lock incq (%rax)":      func(c *x86.Code) { c.LockedInc(x86.At(x86.RAX, 0)) },
		"lock xadd %rax,(%rdx)": func(c *x86.Code) { c.LockedFetchAdd(x86.At(x86.RDX, 0), x86.RAX) },
		"lahf; seto %al":        func(c *x86.Code) { c.SaveFlags() },
		"add $0x7f,%al; sahf":   func(c *x86.Code) { c.RestoreFlags() },
		"rdtsc":                 func(c *x86.Code) { c.ReadClock() },
		"rdtscp":                func(c *x86.Code) { c.ReadClockOrdered() },
		"lfence":                func(c *x86.Code) { c.Fence() },
		"rdfsbase %rdx":         func(c *x86.Code) { c.ReadFSBase(x86.RDX) },
	} {
		var c x86.Code
		make(&c)
		if got := disassemble(t, bytes(t, &c)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func bytes(t *testing.T, c *x86.Code) []byte {
	t.Helper()
	b, err := c.Bytes(at)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// disassemble returns the code in GNU syntax.
func disassemble(t *testing.T, code []byte) string {
	t.Helper()
	var list []string
	for len(code) > 0 {
		inst, err := x86asm.Decode(code, 64)
		if err != nil {
			t.Fatalf("% x: %v", code, err)
		}
		list = append(list, x86asm.GNUSyntax(inst, 0, nil))
		code = code[inst.Len:]
	}
	return strings.Join(list, "; ")
}

// TestJumps checks the targets of forward and backward jumps.
func TestJumps(t *testing.T) {
	for _, distance := range []int{0, 127, 128, 1000} {
		var c x86.Code
		back, on := c.NewLabel(), c.NewLabel()
		c.Here(back)
		c.JumpIf(x86.IfNot, on)
		for range distance {
			c.Push(x86.RAX)
		}
		c.Here(on)
		c.Jump(back)
		b := bytes(t, &c)
		first, err := x86asm.Decode(b, 64)
		if err != nil {
			t.Fatal(err)
		}
		last, err := x86asm.Decode(b[first.Len+distance:], 64)
		if err != nil {
			t.Fatal(err)
		}
		if first.Op != x86asm.JNE || first.Args[0] != x86asm.Rel(distance) || last.Args[0] != x86asm.Rel(-len(b)) {
			t.Errorf("over %d bytes %v, back %v of %d", distance, first, last, len(b))
		}
	}
}

// TestParts checks that parts are in the order of their numbers, and that the code can
// read its data.
func TestParts(t *testing.T) {
	var c x86.Code
	data, end := c.NewLabel(), c.NewLabel()
	c.Part(2)
	c.Here(end)
	c.Push(x86.RAX)
	c.Part(0)
	c.Load(x86.RDX, x86.In(data))
	c.Jump(end)
	c.Part(1)
	c.Here(data)
	c.Data(0x0102030405060708)
	b := bytes(t, &c)
	if got := disassemble(t, b[:12]); got != "mov 0x5(%rip),%rdx; jmpq .+0x8" {
		t.Error(got)
	}
	if b[12] != 8 || b[19] != 1 || b[20] != 0x50 || len(b) != 21 {
		t.Errorf("% x", b)
	}
}

func TestOutOfReach(t *testing.T) {
	var c x86.Code
	c.CmpByte(x86.Abs(at+1<<32), 0)
	if _, err := c.Bytes(at); err == nil || !strings.Contains(err.Error(), "not within 2 GB") {
		t.Errorf("4 GB away: %v", err)
	}
	var far x86.Code
	l := far.NewLabel()
	far.JumpIfRCXZero(l)
	for range 128 {
		far.Push(x86.RAX)
	}
	far.Here(l)
	if _, err := far.Bytes(at); err == nil {
		t.Error("a jrcxz over 128 bytes is accepted")
	}
}
