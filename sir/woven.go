package sir

import "slices"

// merged returns the regions of the program, in which woven regions have their own places, and the markers and
// woven regions that are not among them: an id is in a document once.
func (p *Program) merged() (regions, others []Region) {
	woven := map[string]*Region{}
	for i := range p.Markers {
		if p.Markers[i].Form == Woven {
			woven[p.Markers[i].ID] = &p.Markers[i]
		}
	}
	if len(woven) == 0 {
		return p.Regions, p.Markers
	}
	regions = replaced(p.Regions, woven)
	return regions, slices.DeleteFunc(slices.Clone(p.Markers), func(r Region) bool { return r.Form == Woven && woven[r.ID] == nil })
}

// replaced returns regions with the places of the woven ones with the same ids, which it removes from woven. The
// places of a unit are not in documents.
func replaced(regions []Region, woven map[string]*Region) []Region {
	list := slices.Clone(regions)
	for i := range list {
		r := &list[i]
		r.Regions = replaced(r.Regions, woven)
		own := woven[r.ID]
		if own == nil {
			continue
		}
		delete(woven, r.ID)
		if r.Form = Woven; r.Code != nil {
			code := *r.Code
			code.Entries, code.Exits, code.Uncounted, code.Untimed, code.SharedExits = own.Code.Entries, own.Code.Exits, own.Code.Uncounted, own.Code.Untimed, false
			r.Code, r.Placements = &code, own.Placements
		}
	}
	return list
}
