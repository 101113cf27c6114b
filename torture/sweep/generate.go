//go:build linux && amd64

package sweep

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generated is an assembler source of functions named shape_0, shape_1 and so on, for testdata/shapes.c.
type generated struct {
	source string
	places []place
	shapes int
}

// place is one instruction of a generated program.
type place struct {
	shape int
	text  string
	// times is how often a call of the function executes the instruction, -1 if that depends on the
	// values.
	times int
}

// writer generates functions. The argument of a function, in rdi, is a pointer to 128 words: the
// function loads registers from the first half, and stores registers, flags and its memory to the
// second.
type writer struct {
	*rand.Rand
	code   strings.Builder
	places []place
	shape  int
	times  int
	labels int
	framed bool     // the function has a frame, so it can make calls
	slots  []string // operands of its values in memory
	vector bool     // the processor has AVX
	tables strings.Builder
	leaves strings.Builder // code of the functions that it calls
}

// general lists the registers that functions compute with. rdi points to the words, and r11 counts loops.
var general = []string{"rax", "rcx", "rdx", "rsi", "r8", "r9", "r10"}

// These are indexes of the words that a function stores, and the number of vector registers that it
// uses.
const (
	outGeneral = 64
	outFlags   = 72
	outSlots   = 74
	outVectors = 90
	vectors    = 4
	inVectors  = 16
)

// generate returns the program of a seed.
func generate(seed uint64, shapes int, vector bool) generated {
	w := &writer{Rand: rand.New(rand.NewPCG(seed, 0)), vector: vector}
	w.code.WriteString("\t.text\n")
	for w.shape = range shapes {
		w.function()
	}
	w.code.WriteString(w.leaves.String())
	fmt.Fprintf(&w.code, "\t.section .rodata\n%s\t.section .data.rel.ro,\"aw\"\n\t.balign 8\n\t.globl shapes, shapes_end, places, places_end\nshapes:\n", w.tables.String())
	for i := range shapes {
		fmt.Fprintf(&w.code, "\t.quad shape_%d\n", i)
	}
	w.code.WriteString("shapes_end:\nplaces:\n")
	for i := range w.places {
		fmt.Fprintf(&w.code, "\t.quad .Lp%d\n", i)
	}
	w.code.WriteString("places_end:\n\t.section .note.GNU-stack,\"\",@progbits\n")
	return generated{source: w.code.String(), places: w.places, shapes: shapes}
}

// put writes one instruction, and records it as a place.
func (w *writer) put(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(&w.code, ".Lp%d:\t%s\n", len(w.places), text)
	w.places = append(w.places, place{w.shape, text, w.times})
}

func (w *writer) label() string {
	w.labels++
	return fmt.Sprintf(".Ll%d", w.labels)
}

func (w *writer) mark(label string) { fmt.Fprintf(&w.code, "%s:\n", label) }

func (w *writer) function() {
	name := fmt.Sprintf("shape_%d", w.shape)
	fmt.Fprintf(&w.code, "\t.p2align %d\n\t.globl %s\n\t.type %s, @function\n%s:\n", w.IntN(5), name, name, name)
	w.times, w.framed = 1, w.IntN(3) == 0
	w.enter()
	for range 20 + w.IntN(40) {
		w.statement()
	}
	w.leave()
	fmt.Fprintf(&w.code, "\t.size %s, .-%s\n", name, name)
}

// enter loads the registers.
func (w *writer) enter() {
	w.slots = nil
	base := "rsp"
	if w.framed {
		w.put("push %%rbp")
		w.put("mov %%rsp, %%rbp")
		w.put("sub $%d, %%rsp", 128)
		base = "rbp"
	} else if w.IntN(3) == 0 {
		w.put("endbr64")
	}
	for i, r := range general {
		w.put("mov %d(%%rdi), %%%s", 8*i, r)
	}
	for i := range vectors {
		w.put("%s", w.load(i, fmt.Sprintf("%d(%%rdi)", 8*(inVectors+4*i))))
	}
	for _, i := range w.Perm(16)[:3+w.IntN(4)] {
		slot := fmt.Sprintf("%d(%%%s)", -8*(i+1), base)
		w.slots = append(w.slots, slot)
		w.put("mov %%%s, %s", w.reg(), slot)
	}
	w.put("add %%%s, %%%s", w.reg(), w.reg())
}

// leave stores everything, first the registers, because storing them changes no flags.
func (w *writer) leave() {
	w.times = 1
	for i, r := range general {
		w.put("mov %%%s, %d(%%rdi)", r, 8*(outGeneral+i))
	}
	w.put("seto %d(%%rdi)", 8*outFlags)
	w.put("lahf")
	w.put("mov %%ah, %d(%%rdi)", 8*outFlags+1)
	for i, slot := range w.slots {
		w.put("mov %s, %%rax", slot)
		w.put("mov %%rax, %d(%%rdi)", 8*(outSlots+i))
	}
	for i := range vectors {
		at := fmt.Sprintf("%d(%%rdi)", 8*(outVectors+4*i))
		if w.vector {
			w.put("vmovdqu %%ymm%d, %s", i, at)
		} else {
			w.put("movdqu %%xmm%d, %s", i, at)
		}
	}
	if w.framed {
		w.put("leave")
	}
	w.put("ret")
}

func (w *writer) load(i int, from string) string {
	if w.vector {
		return fmt.Sprintf("vmovdqu %s, %%ymm%d", from, i)
	}
	return fmt.Sprintf("movdqu %s, %%xmm%d", from, i)
}

func (w *writer) reg() string { return general[w.IntN(len(general))] }

func (w *writer) slot() string { return w.slots[w.IntN(len(w.slots))] }
