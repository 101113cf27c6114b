package translate

import (
	"cmp"
	"fmt"
	"strings"

	"mirador/mir"
	"mirador/sir"
)

// findInside finds a region inside a function by its id, which begins with the id of the function
// and a slash. It returns none if no function has such an id: names of functions may have slashes.
func findInside(id string, pos mir.Position, t *Targets) ([]regionCopy, *Error) {
	var failed *Error
	found := t.gather(func(m *Module) []*sir.Region {
		of := functionOf(id, m)
		if of == nil || t.Inside == nil {
			return nil
		}
		regions, err := t.Inside(m, of)
		if err != nil {
			failed = cmp.Or(failed, Errorf(CannotBeDone, pos, "%s: %v", id, err))
			return nil
		}
		whole := sir.Program{Regions: regions}
		for r := range whole.All() {
			if r.ID == id {
				return []*sir.Region{r}
			}
		}
		failed = cmp.Or(failed, Errorf(NotFound, pos, "%s has no region %s%s", of.ID, id[len(of.ID)+1:], regionsOf(regions)))
		return nil
	})
	if len(found) > 0 {
		return found, nil
	}
	return nil, failed
}

// functionOf returns the function that contains the region with an id: the function with the longest
// id that is a prefix of it.
func functionOf(id string, m *Module) *sir.Region {
	for {
		i := strings.LastIndexByte(id, '/')
		if i < 0 {
			return nil
		}
		id = id[:i]
		if r := m.Index().ByID(id); r != nil && r.Kind == sir.Function {
			return r
		}
	}
}

// regionsOf lists the outermost regions inside a function.
func regionsOf(regions []sir.Region) string {
	const most = 10
	var names []string
	for _, r := range regions {
		if len(names) == most {
			names = append(names, "…")
			break
		}
		names = append(names, r.ID[strings.LastIndexByte(r.ID, '/')+1:])
	}
	if len(names) == 0 {
		return "; it has none"
	}
	return fmt.Sprintf("; it has %s", strings.Join(names, ", "))
}

// sharedExits refuses a region that ends at instructions which other code reaches too. It accepts a
// region that is also entered at its own entries: then an end counts only if its entry was seen.
func (p *Plan) sharedExits(c *mir.CodeRegion, t *Targets) *Error {
	name := cmp.Or(c.To, c.From)
	copies, err := findNamed(name, c.Pos, t)
	if err != nil || copies[0].Code == nil || !copies[0].Code.SharedExits || c.From == name && !p.Traced {
		return nil
	}
	return Errorf(CannotBeDone, c.Pos, "other code reaches the instructions where %s ends, so its ends cannot be told apart; measure the region as a whole with COUNT or a time, or one around it", name)
}

// markerAlone refuses to measure the length of a marker, which is an instant. Nothing ends there.
func markerAlone(p *Plan, r *region, c *mir.CodeRegion) *Error {
	if r.copies[0].Kind != sir.Marker {
		return nil
	}
	if r.entry {
		r.exit = false
	}
	if p.Times() || p.TimesCPU() || p.Traced || p.Gains.any() && p.Gains.ends == bothEnds {
		return Errorf(CannotBeDone, c.Pos, "%s is a marker, an instant without a length: name where the region ends in \"to\", such as another marker", called(r.copies))
	}
	return nil
}
