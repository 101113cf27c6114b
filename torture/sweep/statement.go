//go:build linux && amd64

package sweep

import "fmt"

// narrow contains the names of the lowest 32 and 8 bits of general registers.
var narrow = map[string][2]string{
	"rax": {"eax", "al"}, "rcx": {"ecx", "cl"}, "rdx": {"edx", "dl"}, "rsi": {"esi", "sil"},
	"r8": {"r8d", "r8b"}, "r9": {"r9d", "r9b"}, "r10": {"r10d", "r10b"},
}

var (
	conditions = []string{"o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"}
	arithmetic = []string{"add", "adc", "sbb", "sub", "xor", "and", "or", "cmp", "test"}
	unary      = []string{"inc", "dec", "neg", "not", "bswap"}
	shifts     = []string{"shl", "shr", "sar", "rol", "ror", "rcl", "rcr"}
	packed     = []string{"paddq", "pxor", "psubd", "pmuludq", "pshufb", "pand", "por", "punpcklqdq"}
	wide       = []string{"vpaddq", "vpxor", "vpsubd", "vpmuludq", "vpand", "vpor"}
	nops       = []string{
		"nop", ".byte 0x66, 0x90", ".byte 0x0f, 0x1f, 0x00", ".byte 0x0f, 0x1f, 0x40, 0x00", ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00",
		".byte 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00", ".byte 0x0f, 0x1f, 0x80, 0, 0, 0, 0", ".byte 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0",
	}
)

func pick(w *writer, list []string) string { return list[w.IntN(len(list))] }

// statement writes a few instructions of a random kind.
func (w *writer) statement() {
	switch w.IntN(16) {
	case 0:
		w.branch()
	case 1:
		w.loop()
	case 2:
		w.table()
	case 3:
		w.call()
	default:
		w.simple()
	}
}

// simple writes one instruction that does not branch.
func (w *writer) simple() {
	a, b := w.reg(), w.reg()
	switch w.IntN(22) {
	case 0, 1, 2:
		w.put("%s %%%s, %%%s", pick(w, arithmetic), a, b)
	case 3:
		w.put("%s $%d, %%%s", pick(w, arithmetic), w.IntN(250)-125, a)
	case 4:
		w.put("%s $%d, %%%s", pick(w, arithmetic), w.Int32(), a)
	case 5:
		w.put("%s %%%s", pick(w, unary), a)
	case 6:
		w.put("%s $%d, %%%s", pick(w, shifts), 1+w.IntN(30), narrow[a][0])
	case 7:
		w.put("lea %d(%%%s,%%%s,%d), %%%s", w.IntN(300)-150, a, b, 1<<w.IntN(4), w.reg())
	case 8:
		w.put("mov %%%s, %s", a, w.slot())
	case 9:
		w.put("mov %s, %%%s", w.slot(), a)
	case 10:
		w.put("%s %%%s, %s", pick(w, []string{"add", "adc", "xor", "sbb"}), a, w.slot())
	case 11:
		w.put("%s %s, %%%s", pick(w, []string{"add", "adc", "xor", "sbb", "imul"}), w.slot(), a)
	case 12:
		w.put("set%s %%%s", pick(w, conditions), narrow[a][1])
	case 13:
		w.put("cmov%s %%%s, %%%s", pick(w, conditions), a, b)
	case 14:
		w.put("%s", pick(w, nops))
	case 15:
		w.put("%s %%xmm%d, %%xmm%d", pick(w, packed), w.IntN(vectors), w.IntN(vectors))
	case 16:
		w.put("movq %%%s, %%xmm%d", a, w.IntN(vectors))
	case 17:
		w.put("movq %%xmm%d, %%%s", w.IntN(vectors), a)
	case 18:
		w.put("mov constants+%d(%%rip), %%%s", 8*w.IntN(8), a)
	case 19:
		w.put("xchg %%%s, %%%s", a, b)
	case 20:
		w.widen()
	case 21:
		w.put("mul %%%s", a)
	}
}

// widen uses the upper halves of the vector registers if the processor has them.
func (w *writer) widen() {
	a, b, c := w.IntN(vectors), w.IntN(vectors), w.IntN(vectors)
	switch {
	case !w.vector:
		w.put("mulps %%xmm%d, %%xmm%d", a, b)
	case w.IntN(2) == 0:
		w.put("%s %%ymm%d, %%ymm%d, %%ymm%d", pick(w, wide), a, b, c)
	default:
		w.put("vpermq $%d, %%ymm%d, %%ymm%d", w.IntN(256), a, b)
	}
}

// sometimes writes instructions that may be skipped.
func (w *writer) sometimes(n int) {
	before := w.times
	w.times = -1
	for range n {
		w.simple()
	}
	w.times = before
}

// branch writes a jump over a few instructions; some jumps are long.
func (w *writer) branch() {
	over := w.label()
	if w.IntN(4) == 0 {
		w.put("jmp %s", over)
		w.code.WriteString("\t.byte 0x0f, 0x0b\n") // ud2
		w.mark(over)
		return
	}
	condition := pick(w, conditions)
	if w.IntN(4) == 0 {
		w.put("{disp32} j%s %s", condition, over)
	} else {
		w.put("j%s %s", condition, over)
	}
	w.sometimes(1 + w.IntN(4))
	w.mark(over)
}

// loop writes a loop.
func (w *writer) loop() {
	n, again := 1+w.IntN(3), w.label()
	w.put("mov $%d, %%r11d", n)
	before := w.times
	if w.times > 0 {
		w.times *= n
	}
	w.mark(again)
	for range 1 + w.IntN(4) {
		w.simple()
	}
	if w.IntN(3) == 0 {
		w.put("lea -1(%%r11), %%r11d")
		w.put("test %%r11d, %%r11d")
	} else {
		w.put("dec %%r11d")
	}
	w.put("jnz %s", again)
	w.times = before
}

// table writes a jump by a table, as compilers do for a switch.
func (w *writer) table() {
	const cases = 4
	a, list, end := w.reg(), w.label(), w.label()
	w.put("mov %%%s, %%r10", a)
	w.put("and $7, %%r10d")
	w.put("cmp $%d, %%r10d", cases-1)
	w.put("ja %s", end)
	before := w.times
	w.times = -1
	w.put("lea %s(%%rip), %%r11", list)
	w.put("movslq (%%r11,%%r10,4), %%r10")
	w.put("add %%r11, %%r10")
	w.put("jmp *%%r10")
	fmt.Fprintf(&w.tables, "\t.balign 4\n%s:\n", list)
	for range cases {
		at := w.label()
		fmt.Fprintf(&w.tables, "\t.long %s-%s\n", at, list)
		w.mark(at)
		// The value of r10 depends on the program's address in memory.
		w.put("mov $%d, %%r10d", w.IntN(100))
		for range 1 + w.IntN(3) {
			w.simple()
		}
		w.put("jmp %s", end)
	}
	w.mark(end)
	w.times = before
}

// call writes a call of a function that reads its return address. Without a frame, the code saves
// and restores the flags in a temporary frame above its values.
func (w *writer) call() {
	if !w.framed {
		w.put("lea -256(%%rsp), %%rsp")
		w.put("pushfq")
		w.simpleOf("lea 1(%%%s), %%%s")
		w.put("popfq")
		w.put("lea 256(%%rsp), %%rsp")
		return
	}
	leaf, back := fmt.Sprintf("leaf_%d", w.labels+1), w.label()
	w.put("call %s", leaf)
	w.mark(back)
	w.put("lea %s(%%rip), %%r11", back)
	w.put("sub %%r11, %%r10")
	kept := w.code
	w.code.Reset()
	fmt.Fprintf(&w.code, "\t.p2align %d\n\t.type %s, @function\n%s:\n", w.IntN(5), leaf, leaf)
	w.put("mov (%%rsp), %%r10")
	for range w.IntN(3) {
		w.put("%s %%%s, %%%s", pick(w, arithmetic), pick(w, general[:6]), pick(w, general[:6]))
	}
	w.put("ret")
	fmt.Fprintf(&w.code, "\t.size %s, .-%s\n", leaf, leaf)
	w.leaves.WriteString(w.code.String())
	w.code = kept
}

// simpleOf writes an instruction on one register.
func (w *writer) simpleOf(format string) {
	a := w.reg()
	w.put(format, a, a)
}
