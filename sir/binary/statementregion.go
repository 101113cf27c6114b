package binary

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mirador/sir/flow"
)

// errOptimisedStatement: copies of a statement in an unrolled loop follow each other without a sign.
var errOptimisedStatement = errors.New("its code is optimised, and copies of it that follow each other are not told apart; compile without optimisation")

// isOutlined reports whether the function begins in the statement that is measured: the compiler made a function of code inside,
// such as a lambda or the region of a directive of OpenMP. It is no code of the function that executes the statement.
func (b *branchPart) isOutlined() bool {
	return b.alone && slices.ContainsFunc(b.begun[b.of.f.addr], func(s statement) bool {
		return s.file == b.file && b.branch.holds(position{s.file, s.line, s.column})
	})
}

// madeOf returns the function of the source: that of a directive of OpenMP is made by gcc of a part of one, and its variables are in
// a structure whether it is optimised or not.
func (b *branchPart) madeOf(im *Image) symbol {
	if outer, _, made := strings.Cut(b.of.f.name, "._omp_fn."); made {
		if i := slices.IndexFunc(im.funcs, func(f symbol) bool { return f.name == outer }); i >= 0 {
			return im.funcs[i]
		}
	}
	return b.of.f
}

// severalFunctions says why the code of a statement is not counted in two functions, "" if it is: they may be copies of one, but not
// a function and what a compiler makes of a directive of OpenMP in it.
func (f *fork) severalFunctions(one, other string) string {
	if one != "" && (strings.Contains(one, "omp_") || strings.Contains(other, "omp_")) {
		return fmt.Sprintf("its code is in %s and in %s, which threads of OpenMP may execute", one, other)
	}
	return ""
}

// included returns the address of code in the function that is of another file and not inlined, 0 if there is none. Where the
// source includes a file, such code may be in the statement, and nothing tells.
func (b *branchPart) included() uint64 {
	for n, p := range b.of.places {
		addr := b.of.insts[n].addr
		if p.line > 0 && p.file != b.file && !slices.ContainsFunc(b.calls, func(i instance) bool { return i.holds(addr) }) {
			return addr
		}
	}
	return 0
}

// entrance says why the edges into a statement are not its executions, "" if they are. All must lead to its beginning, to
// which no code inside leads: an execution that follows another one without code between would not be seen.
func (b *branchPart) entrance(enter []flow.Edge) string {
	if at := b.included(); at != 0 {
		return fmt.Sprintf("its function has code of an included file at %#x, which may be in it", at)
	}
	for _, e := range enter {
		at := b.Blocks[e.To].Start
		switch again := b.Blocks[e.To].Pred; {
		case e.From == flow.Outside:
			return fmt.Sprintf("the function begins in it, at %#x", at)
		case e.To != enter[0].To:
			return fmt.Sprintf("control comes to its code at %#x and at %#x: a goto or a label of a switch, or code that the compiler copied", b.Blocks[enter[0].To].Start, at)
		case !b.atBeginning(e.To):
			return fmt.Sprintf("control comes into its middle at %#x", at)
		case slices.ContainsFunc(again, b.holds):
			return fmt.Sprintf("control comes to its beginning at %#x from outside and from inside, and may have left it between", at)
		}
	}
	return ""
}
