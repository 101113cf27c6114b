package binary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mirador/sir"
)

// Regions that package sir/weave has woven into the sources of a program begin and end at static probes.
// Their provider is mirador, and their names are begin:KIND:ID and end:KIND:ID with the id of the source. One
// more note, weaving:ID, says which weaving the source is of; it has no address. In Go they begin and end at calls of
// functions whose names say the same (sir.GoMarks).
const wovenProvider = "mirador"

// woven returns the woven regions of the program in the order of their ids, and the id of the weaving, ""
// if there is none. All code with the id of a region is one region: the compiler may copy it.
func (im *Image) woven() (all []sir.Region, weaving string) {
	found := make(wovenRegions)
	im.eachMarker(func(m marker) {
		what, rest, _ := strings.Cut(m.name, ":")
		if m.provider != wovenProvider {
			return
		}
		if what == "weaving" {
			weaving = rest
		}
		if im.isCode(m.address) {
			found.add(what, rest, m.address)
		}
	})
	for _, f := range im.funcs {
		what, of, region := sir.GoMark(f.name)
		if what == "" {
			continue
		}
		if at, err := im.entered(&sir.Region{Name: f.name, Entry: f.addr}); err == nil {
			found.add(what, printable(region), at)
			weaving = printable(of)
		}
	}
	for _, r := range found {
		im.finishWoven(r)
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b sir.Region) int { return cmp.Compare(a.ID, b.ID) })
	return all, weaving
}

// wovenRegions are regions by their ids.
type wovenRegions map[string]*sir.Region

// add adds a place where a region begins or ends: region is KIND:ID.
func (found wovenRegions) add(what, region string, address uint64) {
	kind, id, ok := strings.Cut(region, ":")
	if what != "begin" && what != "end" || !ok || id == "" || !wovenKind(sir.Kind(kind)) {
		return
	}
	r := found[id]
	if r == nil {
		r = &sir.Region{ID: id, Name: id, Symbol: id, Kind: sir.Kind(kind), Form: sir.Woven, Code: &sir.Code{}}
		found[id] = r
	}
	if what == "begin" {
		r.Code.Entries = append(r.Code.Entries, address)
	} else {
		r.Code.Exits = append(r.Code.Exits, address)
	}
}

// wovenKind reports whether regions of a kind can be woven.
func wovenKind(k sir.Kind) bool {
	switch k {
	case sir.Inlined, sir.Line, sir.Marker, sir.Module, sir.Class, "":
		return false
	}
	return !strings.ContainsAny(string(k), "\uFFFD /") && len(k) < 20
}

// finishWoven says what cannot be measured of a woven region. A function has the address of its unit, because other
// regions inside it are found by that.
func (im *Image) finishWoven(r *sir.Region) {
	c := r.Code
	c.Entries, c.Exits = ascending(c.Entries), ascending(c.Exits)
	if len(c.Entries) == 0 {
		c.Uncounted = "the compiler left no code of its beginning"
		c.Untimed = c.Uncounted
	} else if r.Entry = c.Entries[0]; len(c.Exits) == 0 {
		c.Untimed = errNeverLeft.Error()
	}
	ids := im.ids()
	if own, ok := strings.CutPrefix(r.ID, ids.base); ok && ids.find(own) >= 0 {
		f := im.funcs[ids.find(own)]
		r.Entry, r.Size = f.addr, f.size
	}
}

// level checks that the stack pointer is the same where a woven region begins and ends in a function: timers identify
// an execution by it. It differs only if the region calls alloca. Functions that are not understood pass.
func (im *Image) level(r *sir.Region) error {
	begins := map[uint64]stackAt{} // by function
	for i, at := range slices.Concat(r.Code.Entries, r.Code.Exits) {
		f, ok := im.find(at)
		if !ok {
			continue
		}
		g, err := im.analyse(f)
		if err != nil {
			continue
		}
		var depth stackAt
		if n := numberAt(g.parts, at); n >= 0 {
			depth = g.stackDepths()[n]
		}
		begin, seen := begins[f.addr]
		switch {
		case !depth.known:
			return fmt.Errorf("the stack pointer at %#x, where %s begins or ends, depends on the way there", at, r.ID)
		case !seen && i < len(r.Code.Entries):
			begins[f.addr] = depth
		case seen && begin != depth:
			return fmt.Errorf("the stack pointer is not the same where %s begins and ends, as at %#x", r.ID, at)
		}
	}
	return nil
}
