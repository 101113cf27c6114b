package sir

// Index finds the regions of a program by id and by name. It is immutable, and may be used by
// several goroutines.
type Index struct {
	byID   map[string]*Region
	byName map[string][]*Region
}

// NewIndex makes an index of a program. It takes a few times as long as a linear search in all regions.
func NewIndex(p *Program) *Index {
	x := &Index{byID: make(map[string]*Region, len(p.Regions)), byName: make(map[string][]*Region, len(p.Regions))}
	for r := range p.All() {
		x.byID[r.ID] = r
		x.byName[r.Name] = append(x.byName[r.Name], r)
		if r.Symbol != r.Name {
			x.byName[r.Symbol] = append(x.byName[r.Symbol], r)
		}
	}
	return x
}

// ByID returns the region with an id, nil if there is none.
func (x *Index) ByID(id string) *Region { return x.byID[id] }

// ByName returns the regions with a name in the source or in the symbol table.
func (x *Index) ByName(name string) []*Region { return x.byName[name] }
