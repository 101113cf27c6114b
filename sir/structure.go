// Package sir defines the structure document: programs as trees of regions, with ids that
// requests refer to. It imports no other package of this module. sir/binary creates a Program
// from ELF and DWARF, sir/source from source files; mir/translate finds regions in it, and asks a
// Locator for their places.
package sir

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Structure has the structure of a set of programs.
type Structure struct {
	Producer string // the program that made it, "" for this one
	Programs []Program
}

// Program is an executable or a shared library, or what a set of source files is compiled to.
type Program struct {
	Path      string     // of sources: the name of the program
	BuildID   string     // hexadecimal, "" if the file has none
	Resources []Resource // the source files
	Regions   []Region   // in the order of their addresses, or of the sources
	Markers   []Region   // in the order of their names, followed by the woven regions in the order of their ids
	Weaving   string     // the id of the weaving of its sources, "" if they were not woven; no document contains it
	// Inside sets the regions inside a copy of a unit while a document is written; nil if Regions has them. Several
	// goroutines call it. An error ends the document.
	Inside func(unit *Region) error
}

// Resource is a source file.
type Resource struct {
	In, Out  string // as the request names them
	Hash     string // of its text: SHA-256, hexadecimal
	Language string
	Gaps     []Gap // the parts that were not understood
	MoreGaps int   // how many others there are
}

// Gap is a part of a source file that was not understood.
type Gap struct {
	Line, Column       int
	EndLine, EndColumn int // of its last byte
	Reason             string
}

// Kind is the kind of a region.
type Kind string

// Kinds of regions. A document calls a function a unit, and the others code regions.
const (
	Function Kind = "function"
	Loop     Kind = "loop"
	Body     Kind = "body" // of a loop: its executions are the loop's iterations
	Call     Kind = "call"
	Line     Kind = "line" // of the source: no document contains it
	Inlined  Kind = "inlined"
	All      Kind = "all" // the code of a function and all places where it is inlined: no document contains it
)

// AllSuffix is what follows the id of a function in the id of its region All.
const AllSuffix = "/all"

// Copies says where a function has code besides its own.
type Copies struct {
	Into     []string // the functions into which it is inlined
	Places   int      // where it is inlined
	Versions []string // the symbols of its versions for certain arguments
	More     bool     // there may be more
}

// Further kinds of regions of sources. The first ones are units.
const (
	MainProgram Kind = "program" // of Fortran
	Module      Kind = "module"  // also a namespace and a package
	Class       Kind = "class"   // also a struct and an interface with code
	Method      Kind = "method"
	Subroutine  Kind = "subroutine"
	Lambda      Kind = "lambda" // also a closure

	If         Kind = "if"     // with its branches
	Switch     Kind = "switch" // with its branches
	Branch     Kind = "branch"
	Block      Kind = "block" // a construct of Fortran, or a loop that is executed once
	Scope      Kind = "scope" // statements in braces that are no part of another statement
	Try        Kind = "try"
	Catch      Kind = "catch"
	Finally    Kind = "finally"
	Throw      Kind = "throw"
	Return     Kind = "return"
	Stop       Kind = "stop" // a statement that ends the program
	OpenMP     Kind = "openmp"
	IO         Kind = "io"         // a statement of input or output
	Allocation Kind = "allocation" // a statement that allocates or frees memory
	Lock       Kind = "lock"       // a block that holds a lock, or a statement that takes or frees one
	Spawn      Kind = "spawn"      // a statement that starts a thread
	Deferred   Kind = "deferred"   // a call at the end of the function
)

// IsStatement reports whether the region is a whole statement or a block of a source, which no condition of its own decides about.
func (r *Region) IsStatement() bool {
	switch r.Kind {
	case Scope, Block, If, Switch, Try, Throw, Return, Stop, OpenMP, IO, Lock:
		return true
	case Branch:
		return r.Form == "body" // of a try statement
	case Allocation:
		return r.Form != "new" && r.Form != "delete" // these are expressions
	}
	return false
}

// Marker is an instant that the authors of a program have marked in its code, by a static probe of
// SystemTap's form (sys/sdt.h). Its entries and its exits are all places that have the marker's name.
const Marker Kind = "marker"

// Woven is the form of regions that begin and end at places which were written into the source.
const Woven = "woven"

// Region is a part of a program that can be measured, with the regions inside it. Its id is
// stable: it depends only on the program's identity and the region's name, so the same build
// has the same ids in every run, on every machine.
type Region struct {
	ID      string
	Name    string // demangled, as in the source
	Symbol  string // as in the symbol table
	Kind    Kind
	Form    string // the variant of the kind, "" if there is only one
	File    string // from DWARF, or a resource
	Line    int
	Entry   uint64 // address in the file, without the module's bias
	Size    uint64
	Code    *Code   // of a region inside a function
	Extent  *Extent // of a unit of a source
	Regions []Region
	// Unknown says why the regions inside are not known, "" if they are.
	Unknown string
	// Placements says where a probe of the region can be, nil if that was not found out.
	Placements *Placements
}

// Extent is where a unit is in the source. Columns count bytes.
type Extent struct {
	Column             int // in Line
	EndLine, EndColumn int // of its last byte
}

// Code describes a region inside a function.
type Code struct {
	Column  int // in Line, 0 if not known
	EndLine int // the greatest line
	// EndColumn is that of the last byte, 0 if it is not known.
	EndColumn int
	Callee    string // of a call: the name in the source, "" if it is not known
	// Irreducible: control enters the loop at several places. It has no body then.
	Irreducible bool
	// Falls: control may go on from the end of this branch of a switch to the next one. Empty: this branch has no
	// statement, or only one that leaves it.
	Falls, Empty bool
	Ranges       []Range
	Enter        []Edge // all ways into the region
	Leave        []Edge // all ways out of it
	// Entries and Exits are the addresses that a Locator returns. Uncounted and Untimed say why
	// there are none, "" if there are.
	Entries, Exits     []uint64
	When               map[uint64]Condition // of entries that count only under a condition
	Uncounted, Untimed string
	// SharedExits: other code reaches the exits too, while no execution is in the region.
	SharedExits bool
}

// Condition is a condition of the processor's flags: its number in conditional jumps and 1, 0 for none.
type Condition uint8

// Range is code from an address to the one before another.
type Range struct{ Low, High uint64 }

// Edge leads from an instruction to another one. From is 0 where the function is entered.
type Edge struct{ From, To uint64 }

// All returns the regions of the program, each before those inside it, and then its markers.
func (p *Program) All() iter.Seq[*Region] {
	return func(yield func(*Region) bool) { _ = all(p.Regions, yield) && all(p.Markers, yield) }
}

func all(list []Region, yield func(*Region) bool) bool {
	for i := range list {
		if !yield(&list[i]) || !all(list[i].Regions, yield) {
			return false
		}
	}
	return true
}

// Locator finds where threads enter and leave the regions of a program. Its methods may be
// called from any goroutine. They return addresses in the file in ascending order, and may read
// and disassemble code, so they are called only for regions that are measured.
type Locator interface {
	// Entries returns addresses of which each execution of the region passes exactly one, once.
	Entries(*Region) ([]uint64, error)
	// Exits returns the addresses at which an execution of the region ends. A region that is
	// never left has none.
	Exits(*Region) ([]uint64, error)
}

// Unnamed is the prefix of the names of functions without a symbol. Their address in the file
// follows, so the same file gives the same names.
const Unnamed = "func_"

// HasName reports whether the region has a name of its own.
func (r *Region) HasName() bool { return !strings.HasPrefix(r.Name, Unnamed) }

// WithPrefix returns all programs, with the regions whose ids begin with a prefix, without the
// regions inside them. It returns at most most regions of each program, those with names first.
func (s *Structure) WithPrefix(prefix string, most int) *Structure {
	part := &Structure{Programs: make([]Program, len(s.Programs))}
	for i := range s.Programs {
		p := &s.Programs[i]
		var named, others []Region
		for r := range p.All() {
			twice := func(q Region) bool { return r.Form == Woven && q.ID == r.ID }
			if strings.HasPrefix(r.ID, prefix) && !slices.ContainsFunc(named, twice) {
				alone := *r
				alone.Regions = nil
				if r.HasName() {
					named = append(named, alone)
				} else if len(others) < most {
					others = append(others, alone)
				}
			}
			if len(named) == most {
				break
			}
		}
		all := append(named, others...)
		part.Programs[i] = Program{Path: p.Path, BuildID: p.BuildID, Regions: all[:min(len(all), most)]}
	}
	return part
}

// LineError reports that no code belongs to a line of the source, or to any line of a file.
type LineError struct {
	Program, File string
	Line          int    // 0: the file is not known
	Near          []int  // the nearest lines with code
	Why           string // the file is not known
}

func (e *LineError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s in %s: %s", e.File, e.Program, e.Why)
	}
	return fmt.Sprintf("no statement of %s begins at line %d of %s; the nearest lines where one begins: %s", e.Program, e.Line, e.File, strings.Trim(fmt.Sprint(e.Near), "[]"))
}
