package translate

import (
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
}

// region is a unit and its copies in the application's processes.
type region struct {
	name   string // the unit's name
	copies []unitCopy
	entry  bool // measure the entry
	exit   bool // measure the exits
}

// unitCopy is the unit in one module of one process.
type unitCopy struct {
	process omis.Token
	module  *Module
	unit    *sir.Unit
}

// findRegion finds the code that a codeRegion delimits. From alone, or from equal to to, means
// the whole unit: MIR 4 measures only the beginning if to is omitted, but a unit has an end of
// its own, and a time needs one. To alone means the unit's end.
func findRegion(c *mir.CodeRegion, t *Targets) (*region, *Error) {
	if c.From != "" && c.To != "" && c.From != c.To {
		return nil, Errorf(CannotBeDone, c.Pos, "a region from %s to %s spans two units; leave \"to\" out, or name one unit in both", c.From, c.To)
	}
	name := c.From
	if name == "" {
		name = c.To
	}
	copies, err := findUnit(name, c.Pos, t)
	if err != nil {
		return nil, err
	}
	return &region{name: copies[0].unit.Name, copies: copies, entry: c.From != "", exit: c.From != "" || c.To != ""}, nil
}

// findUnit finds a unit by its id, or else by a name that only one unit has. That is a name
// from the source or the symbol table, with or without the program as a prefix, and in C++
// also without the parameters.
func findUnit(name string, pos mir.Position, t *Targets) ([]unitCopy, *Error) {
	byID := func(x *sir.Index) []*sir.Unit {
		if u := x.ByID(name); u != nil {
			return []*sir.Unit{u}
		}
		return nil
	}
	if found := t.look(byID, func(u *sir.Unit) bool { return u.ID == name }); len(found) > 0 {
		return found, nil
	}
	byName := func(x *sir.Index) []*sir.Unit { return x.ByName(name) }
	found := t.look(byName, func(u *sir.Unit) bool { return u.Name == name || u.Symbol == name })
	if len(found) == 0 {
		found = t.gather(func(m *Module) []*sir.Unit {
			own, inside := strings.CutPrefix(name, m.program()+":")
			if !inside || strings.HasPrefix(own, ":") { // a namespace may have the program's name
				own = name
			}
			return filter(m, func(u *sir.Unit) bool { return u.Name == own || namedLike(u.Name, own) })
		})
	}
	if len(found) == 0 {
		return nil, Errorf(NotFound, pos, "no unit %s%s", name, didYouMean(name, t))
	}
	if others := distinct(found); len(others) > 1 {
		return nil, Errorf(NotFound, pos, "%d units are called %s, use an id: %s", len(others), name, strings.Join(others, ", "))
	}
	return found, nil
}

// program returns the prefix of the ids of the module's units.
func (m *Module) program() string {
	if len(m.Program.Units) == 0 {
		return ""
	}
	base, _, _ := strings.Cut(m.Program.Units[0].ID, ":")
	return base
}

// namedLike reports whether a demangled name is name followed by parameters. The demangled
// name of a template's instance begins with its result type.
func namedLike(demangled, name string) bool {
	before, _, found := strings.Cut(demangled, name+"(")
	return found && name != "" && (before == "" || strings.HasSuffix(before, " "))
}

// look finds units through the index of a module, if it has one. Comparing all units takes 0.1
// ms even in a small program.
func (t *Targets) look(indexed func(*sir.Index) []*sir.Unit, want func(*sir.Unit) bool) []unitCopy {
	return t.gather(func(m *Module) []*sir.Unit {
		if m.Index != nil {
			return indexed(m.Index())
		}
		return filter(m, want)
	})
}

// units returns all units.
func (t *Targets) units() []unitCopy {
	return t.gather(func(m *Module) []*sir.Unit { return filter(m, func(*sir.Unit) bool { return true }) })
}

func (t *Targets) gather(from func(*Module) []*sir.Unit) []unitCopy {
	var found []unitCopy
	for i := range t.Processes {
		p := &t.Processes[i]
		for j := range p.Modules {
			m := &p.Modules[j]
			if m.Program == nil {
				continue
			}
			for _, u := range from(m) {
				found = append(found, unitCopy{p.Token, m, u})
			}
		}
	}
	return found
}

func filter(m *Module, want func(*sir.Unit) bool) []*sir.Unit {
	var found []*sir.Unit
	for i := range m.Program.Units {
		if u := &m.Program.Units[i]; want(u) {
			found = append(found, u)
		}
	}
	return found
}

// distinct lists the different units among copies.
func distinct(copies []unitCopy) []string {
	var ids []string
	for _, c := range copies {
		where := fmt.Sprintf("%s (%s)", c.unit.ID, c.module.Path)
		if !slices.Contains(ids, where) {
			ids = append(ids, where)
		}
	}
	return ids
}

// in reports whether the process has the region.
func (r *region) in(process omis.Token) bool {
	return slices.ContainsFunc(r.copies, func(c unitCopy) bool { return c.process == process })
}

// places lists the places to measure in the given processes: the entry first, then the exits
// in the order of their addresses. Processes with the code at the same address share a place.
func (r *region) places(processes []omis.Token, timed bool) ([]Place, error) {
	var ps []Place
	for _, c := range r.copies {
		if !slices.Contains(processes, c.process) {
			continue
		}
		if r.entry {
			addr, err := c.module.entered(c.unit)
			if err != nil {
				return nil, fmt.Errorf("cannot find where %s is entered: %w", c.unit.Name, err)
			}
			ps = addPlace(ps, Place{Addr: addr + c.module.Bias}, c.process)
		}
		if r.entry && !timed {
			continue
		}
		left, err := c.module.Exits(*c.unit)
		if err != nil {
			return nil, fmt.Errorf("cannot find where %s is left: %w", c.unit.Name, err)
		}
		if len(left) == 0 {
			return nil, fmt.Errorf("%s never returns: there is no place to measure its end", c.unit.Name)
		}
		for _, addr := range left {
			ps = addPlace(ps, Place{Addr: addr + c.module.Bias, Exit: true}, c.process)
		}
	}
	return ps, nil
}

func (m *Module) entered(u *sir.Unit) (uint64, error) {
	if m.Entered == nil {
		return u.Entry, nil
	}
	return m.Entered(*u)
}

func addPlace(ps []Place, p Place, process omis.Token) []Place {
	i := slices.IndexFunc(ps, func(q Place) bool { return q.Addr == p.Addr && q.Exit == p.Exit })
	if i < 0 {
		p.Processes = []omis.Token{process}
		return append(ps, p)
	}
	ps[i].Processes = append(ps[i].Processes, process)
	return ps
}
