// Package sir defines the structure document: programs as trees of regions, with ids that
// requests refer to. It imports no other package of this module. sir/binary creates a Program
// from ELF and DWARF; mir/translate finds regions in it, and asks a Locator for their places.
package sir

import (
	"iter"
	"strings"
)

// Structure has the structure of a set of programs.
type Structure struct {
	Programs []Program
}

// Program is an executable or a shared library.
type Program struct {
	Path    string
	BuildID string   // hexadecimal, "" if the file has none
	Regions []Region // in the order of their addresses
}

// Kind is the kind of a region.
type Kind string

// Kinds of regions. A document calls a function a unit, and the others code regions.
const (
	Function Kind = "function"
	Loop     Kind = "loop"
	Body     Kind = "body" // of a loop: its executions are the loop's iterations
	Call     Kind = "call"
)

// Region is a part of a program that can be measured, with the regions inside it. Its id is
// stable: it depends only on the program's identity and the region's name, so the same build
// has the same ids in every run, on every machine.
type Region struct {
	ID      string
	Name    string // demangled, as in the source
	Symbol  string // as in the symbol table
	Kind    Kind
	File    string // from DWARF
	Line    int
	Entry   uint64 // address in the file, without the module's bias
	Size    uint64
	Code    *Code // of a region inside a function
	Regions []Region
	// Unknown says why the regions inside are not known, "" if they are.
	Unknown string
}

// Code describes a region inside a function.
type Code struct {
	Column  int    // in Line, 0 if not known
	EndLine int    // the greatest line
	Callee  string // of a call: the name in the source, "" if it is not known
	// Irreducible: control enters the loop at several places. It has no body then.
	Irreducible bool
	Ranges      []Range
	Enter       []Edge // all ways into the region
	Leave       []Edge // all ways out of it
	// Entries and Exits are the addresses that a Locator returns. Uncounted and Untimed say why
	// there are none, "" if there are.
	Entries, Exits     []uint64
	Uncounted, Untimed string
	// SharedExits: other code reaches the exits too, while no execution is in the region.
	SharedExits bool
}

// Range is code from an address to the one before another.
type Range struct{ Low, High uint64 }

// Edge leads from an instruction to another one. From is 0 where the function is entered.
type Edge struct{ From, To uint64 }

// All returns the regions of the program, each before those inside it.
func (p *Program) All() iter.Seq[*Region] {
	return func(yield func(*Region) bool) { all(p.Regions, yield) }
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
			if strings.HasPrefix(r.ID, prefix) {
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
