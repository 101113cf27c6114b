// Package sir is the structure document: what a program is made of, as units
// (functions) with ids that a request can refer to. It imports nothing of ours;
// sir/binary fills a Structure from ELF and DWARF, mir/translate looks regions
// up in it.
package sir

// Structure is what a set of programs is made of.
type Structure struct {
	Programs []Program
}

// Program is an executable or a shared library.
type Program struct {
	Path    string
	BuildID string // hexadecimal, "" if the file has none
	Units   []Unit // in the order of their addresses
}

// Unit is a function. Its id is stable: it depends on the program's identity and
// the function's own symbol, so that the same build gives the same ids in every
// run, on every machine.
type Unit struct {
	ID     string
	Name   string // as the source says it: demangled
	Symbol string // as the symbol table says it
	Kind   string // "function"
	File   string // where DWARF says so
	Line   int
	Entry  uint64 // address in the file; add the module's bias
	Size   uint64
	// Exits are the addresses in the file of the instructions by which the
	// function is left: returns and tail jumps. Filled by binary.Exits, since
	// it takes a disassembly.
	Exits []uint64
}
