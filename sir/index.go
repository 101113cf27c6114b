package sir

// Index finds the units of a program by their ids, and by their names. It does not
// change, and may be used from any goroutine.
type Index struct {
	byID   map[string]*Unit
	byName map[string][]*Unit
}

// NewIndex takes as long as to go through all units some times.
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

// ByID is the unit of an id, nil if there is none.
func (x *Index) ByID(id string) *Unit { return x.byID[id] }

// ByName lists the units that are called so, in the source or in the symbol table.
func (x *Index) ByName(name string) []*Unit { return x.byName[name] }
