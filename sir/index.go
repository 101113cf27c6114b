package sir

// Index finds the units of a program by id and by name. It is immutable, and may be used by
// several goroutines.
type Index struct {
	byID   map[string]*Unit
	byName map[string][]*Unit
}

// NewIndex takes a few times as long as a linear search in all units.
func NewIndex(p *Program) *Index {
	x := &Index{byID: make(map[string]*Unit, len(p.Units)), byName: make(map[string][]*Unit, len(p.Units))}
	for i := range p.Units {
		u := &p.Units[i]
		x.byID[u.ID] = u
		x.byName[u.Name] = append(x.byName[u.Name], u)
		if u.Symbol != u.Name {
			x.byName[u.Symbol] = append(x.byName[u.Symbol], u)
		}
	}
	return x
}

// ByID returns the unit with an id, nil if there is none.
func (x *Index) ByID(id string) *Unit { return x.byID[id] }

// ByName returns the units with a name in the source or in the symbol table.
func (x *Index) ByName(name string) []*Unit { return x.byName[name] }
