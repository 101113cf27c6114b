package sir

import (
	"iter"
	"strings"
)

// Units finds the units and markers of a program. Its methods may be called from any goroutine. Callers share the
// regions and must not modify them.
type Units interface {
	// Base is the prefix of the ids of the program's units, "" if it has none.
	Base() string
	// Weaving is the id of the weaving of the program's sources, "" if they are not woven.
	Weaving() string
	// ByID returns the region with an id, nil if there is none.
	ByID(id string) *Region
	// ByName returns the regions with a name in the source or in the symbol table.
	ByName(name string) []*Region
	// Resembling returns the regions whose names in the source contain a name, and perhaps more.
	Resembling(name string) iter.Seq[*Region]
	// All returns all regions: it may take seconds, and much memory.
	All() iter.Seq[*Region]
}

// Index finds the regions of a program whose regions are all known.
type Index struct {
	program *Program
	byID    map[string]*Region
	byName  map[string][]*Region
}

var _ Units = (*Index)(nil)

// NewIndex makes an index of a program. It takes a few times as long as a linear search in all regions.
func NewIndex(p *Program) *Index {
	x := &Index{p, make(map[string]*Region, len(p.Regions)), make(map[string][]*Region, len(p.Regions))}
	for r := range p.All() {
		x.byID[r.ID] = r
		x.byName[r.Name] = append(x.byName[r.Name], r)
		if r.Symbol != r.Name {
			x.byName[r.Symbol] = append(x.byName[r.Symbol], r)
		}
	}
	return x
}

// Base implements Units.
func (x *Index) Base() string {
	if len(x.program.Regions) == 0 {
		return ""
	}
	base, _, _ := strings.Cut(x.program.Regions[0].ID, ":")
	return base
}

// Weaving implements Units.
func (x *Index) Weaving() string { return x.program.Weaving }

// ByID implements Units.
func (x *Index) ByID(id string) *Region { return x.byID[id] }

// ByName implements Units.
func (x *Index) ByName(name string) []*Region { return x.byName[name] }

// Resembling implements Units.
func (x *Index) Resembling(string) iter.Seq[*Region] { return x.All() }

// All implements Units.
func (x *Index) All() iter.Seq[*Region] { return x.program.All() }
