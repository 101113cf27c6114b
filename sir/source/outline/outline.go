// Package outline turns what the readers of languages find in source files into the structure of a
// program: it gives regions their ids and positions, whatever the language. It keeps the tree sound:
// regions are inside the ones around them, and do not overlap.
//
// The package imports only sir. It starts no goroutines, and keeps no state between calls.
package outline

import "mirador/sir"

// Node is a region of a source file, as a reader finds it.
type Node struct {
	Kind       sir.Kind
	Form       string
	Start, End int // bytes of the file: from the first one to the one behind the last
	// Name is that of a unit in the source. Symbol is its name in the symbol table of the program;
	// "": the compiler decides, and the id has the name.
	Name, Symbol string
	Static       bool // other files may have a unit with this symbol
	// Callee is the function that a call names. CalleeSymbol is its symbol; "": the same, "*": a
	// value decides which function is called.
	Callee, CalleeSymbol string
	// Before is set if the loop around the node executes it once, before its first test.
	Before bool
	// Falls is set if control may go on from the end of this branch of a switch to the next one.
	Falls bool
	// Empty is set if this branch has no statement, or only one that leaves it.
	Empty   bool
	Unknown string // why the regions inside are not known
	Nodes   []*Node
}

// Gap is a part of a file that a reader did not understand.
type Gap struct {
	Start, End int
	Reason     string
}

// File is a source file and what a reader has found there.
type File struct {
	In, Out  string // names of the resource
	Path     string // in positions
	Language string
	Text     []byte
	Nodes    []*Node
	Gaps     []Gap // as Miss adds them
	more     int   // number of gaps that are not kept
}

// mostKept is the number of gaps of a file that are kept until they are sorted.
const mostKept = 10_000

// Miss adds a gap.
func (f *File) Miss(start, end int, reason string) {
	if len(f.Gaps) >= mostKept {
		f.more++
		return
	}
	f.Gaps = append(f.Gaps, Gap{start, end, reason})
}

// IsUnit reports whether regions of a kind are units.
func IsUnit(k sir.Kind) bool {
	switch k {
	case sir.Function, sir.MainProgram, sir.Module, sir.Class, sir.Method, sir.Subroutine, sir.Lambda:
		return true
	}
	return false
}

// HasCode reports whether units of a kind are executed.
func HasCode(k sir.Kind) bool { return IsUnit(k) && k != sir.Module && k != sir.Class }
