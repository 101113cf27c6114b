package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mirador/mir"
	"mirador/omis"
	"mirador/sir"
)

// Place is an address at which a region is entered or left, in the processes that have the
// code there.
type Place struct {
	Processes []omis.Token
	Addr      uint64
	Exit      bool
	When      sir.Condition // the region is entered only under a condition of the flags
}

// region is a region of a program and its copies in the application's processes.
type region struct {
	name   string // in the source
	copies []regionCopy
	entry  bool // measure the entry
	exit   bool // measure the exits
}

// regionCopy is the region in one module of one process.
type regionCopy struct {
	process omis.Token
	module  *Module
	*sir.Region
}

// findRegion finds the code that a codeRegion delimits. From alone, or from equal to to, means
// the whole region: MIR 4 measures only the beginning if to is omitted, but a region of a
// structure has an end of its own, and a time needs one. To alone means the region's end. If
// from and to are two units, end is the second one: the entries of the first and the exits of
// the second delimit the region.
func findRegion(c *mir.CodeRegion, t *Targets) (r, end *region, _ *Error) {
	copies, err := findNamed(cmp.Or(c.From, c.To), c.Pos, t)
	if err != nil {
		return nil, nil, err
	}
	r = &region{name: called(copies), copies: copies, entry: c.From != "", exit: true}
	if c.From == "" || c.To == "" || c.From == c.To {
		return r, nil, nil
	}
	last, err := findNamed(c.To, c.Pos, t)
	if err != nil {
		return nil, nil, err
	}
	if slices.Equal(distinct(last), distinct(copies)) {
		return r, nil, nil
	}
	r.exit = false
	return r, &region{name: called(last), copies: last, exit: true}, nil
}

// called returns the name of a region, or the id of a region inside a function, which has no name.
func called(copies []regionCopy) string {
	if copies[0].Code != nil {
		return copies[0].ID
	}
	return copies[0].Name
}

// findNamed finds a region by its id, or else a line of the source, or the region that alone has a name: a name from
// the source or the symbol table, with or without the program as a prefix, and in C++ also without the
// parameters.
func findNamed(name string, pos mir.Position, t *Targets) ([]regionCopy, *Error) {
	found := t.gather(func(m *Module) []*sir.Region {
		if r := m.Units.ByID(name); r != nil {
			return []*sir.Region{r}
		}
		return nil
	})
	if len(found) > 0 {
		return found, nil
	}
	if inner, err := findInside(name, pos, t); len(inner) > 0 || err != nil {
		return inner, err
	}
	if lines, err := findLine(name, pos, t); len(lines) > 0 || err != nil {
		return lines, err
	}
	found = t.gather(func(m *Module) []*sir.Region { return m.Units.ByName(name) })
	if len(found) == 0 {
		found = t.gather(func(m *Module) []*sir.Region { return m.namedLike(name) })
	}
	if len(found) == 0 {
		if inlined, err := findInlined(strings.TrimSuffix(name, sir.AllSuffix), pos, t); len(inlined) > 0 || err != nil {
			return inlined, err
		}
		return nil, Errorf(NotFound, pos, "no unit %s%s", name, didYouMean(name, t))
	}
	if others := distinct(found); len(others) > 1 {
		return nil, Errorf(NotFound, pos, "%d units are called %s, use an id: %s", len(others), name, strings.Join(others, ", "))
	}
	return found, nil
}

// namedLike returns the regions with a name that may have the program as a prefix and may lack the
// parameters.
func (m *Module) namedLike(name string) (found []*sir.Region) {
	own, inside := strings.CutPrefix(name, m.Units.Base()+":")
	if !inside || strings.HasPrefix(own, ":") { // a namespace may have the program's name
		own = name
	}
	for r := range m.Units.Resembling(own) {
		if r.Name == own || namedLike(r.Name, own) {
			found = append(found, r)
		}
	}
	return found
}

// namedLike reports whether a demangled name is name followed by parameters. The demangled
// name of a template's instance begins with its result type.
func namedLike(demangled, name string) bool {
	before, _, found := strings.Cut(demangled, name+"(")
	return found && name != "" && (before == "" || strings.HasSuffix(before, " "))
}

func (t *Targets) gather(from func(*Module) []*sir.Region) []regionCopy {
	var found []regionCopy
	for i := range t.Processes {
		p := &t.Processes[i]
		for j := range p.Modules {
			m := &p.Modules[j]
			if m.Units == nil {
				continue
			}
			for _, r := range from(m) {
				found = append(found, regionCopy{p.Token, m, r})
			}
		}
	}
	return found
}

// distinct lists the different regions among copies.
func distinct(copies []regionCopy) []string {
	var ids []string
	for _, c := range copies {
		where := fmt.Sprintf("%s (%s)", c.ID, c.module.Path)
		if !slices.Contains(ids, where) {
			ids = append(ids, where)
		}
	}
	return ids
}

// in reports whether the process has the region.
func (r *region) in(process omis.Token) bool {
	return slices.ContainsFunc(r.copies, func(c regionCopy) bool { return c.process == process })
}

// places lists the places to measure in the given processes: the entries first, then the exits,
// each in the order of their addresses. Processes with the code at the same address share a place.
func (r *region) places(processes []omis.Token, timed bool) ([]Place, error) {
	var ps []Place
	for _, c := range r.copies {
		if !slices.Contains(processes, c.process) {
			continue
		}
		if r.entry {
			entered, err := c.module.Locator.Entries(c.Region)
			if err != nil {
				return nil, fmt.Errorf("cannot find where %s is entered: %w", c.Name, err)
			}
			for _, addr := range entered {
				ps = addPlace(ps, Place{Addr: addr + c.module.Bias, When: c.when(addr)}, c.process)
			}
		}
		if r.entry && !(timed && r.exit) {
			continue
		}
		left, err := c.module.Locator.Exits(c.Region)
		if err != nil {
			return nil, fmt.Errorf("cannot find where %s is left: %w", c.Name, err)
		}
		if len(left) == 0 {
			return nil, fmt.Errorf("%s never returns: there is no place to measure its end", c.Name)
		}
		for _, addr := range left {
			ps = addPlace(ps, Place{Addr: addr + c.module.Bias, Exit: true}, c.process)
		}
	}
	return ps, nil
}

// when returns the condition under which the region is entered at an address.
func (c *regionCopy) when(addr uint64) sir.Condition {
	if c.Code == nil {
		return 0
	}
	return c.Code.When[addr]
}

// addPlace adds a place in a process. Two executions may begin at one address, which is then two places.
func addPlace(ps []Place, p Place, process omis.Token) []Place {
	i := slices.IndexFunc(ps, func(q Place) bool {
		return q.Addr == p.Addr && q.Exit == p.Exit && q.When == p.When && !slices.Contains(q.Processes, process)
	})
	if i < 0 {
		p.Processes = []omis.Token{process}
		return append(ps, p)
	}
	ps[i].Processes = append(ps[i].Processes, process)
	return ps
}
