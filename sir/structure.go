// Package sir defines the structure document: the units (functions) of a program, with ids
// that requests refer to. It imports no other package of this module. sir/binary creates a
// Program from ELF and DWARF; mir/translate finds regions in it.
package sir

// Structure has the structure of a set of programs.
type Structure struct {
	Programs []Program
}

// Program is an executable or a shared library.
type Program struct {
	Path    string
	BuildID string // hexadecimal, "" if the file has none
	Units   []Unit // in the order of their addresses
}

// Unit is a function. Its id is stable: it depends only on the program's identity and the
// function's symbol, so the same build has the same ids in every run, on every machine.
type Unit struct {
	ID     string
	Name   string // demangled, as in the source
	Symbol string // as in the symbol table
	Kind   string // "function"
	File   string // from DWARF
	Line   int
	Entry  uint64 // address in the file, without the module's bias
	Size   uint64
	// Exits are the addresses in the file of the instructions by which the function is left:
	// returns and tail jumps. binary.Image.Exits computes them, because that requires a disassembly.
	Exits []uint64
}
