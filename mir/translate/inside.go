package translate

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"mirador/mir"
	"mirador/sir"
)

// findInside finds a region inside a function by its id, which begins with the id of the function
// and a slash. It returns none if no function has such an id: names of functions may have slashes.
func findInside(id string, pos mir.Position, t *Targets) ([]regionCopy, *Error) {
	var failed *Error
	found := t.gather(func(m *Module) []*sir.Region {
		of, inside := functionOf(id, m)
		switch {
		case of == nil || t.Inside == nil:
			return nil
		case inside == sir.AllSuffix && t.Whole != nil:
			r, err := t.Whole(m, of)
			if err != nil {
				failed = cmp.Or(failed, Errorf(CannotBeDone, pos, "%s: %v", id, err))
				return nil
			}
			return []*sir.Region{r}
		}
		regions, err := t.Inside(m, of)
		if err != nil {
			failed = cmp.Or(failed, Errorf(CannotBeDone, pos, "%s: %v", id, err))
			return nil
		}
		whole := sir.Program{Regions: regions}
		for r := range whole.All() {
			if r.ID == of.ID+inside {
				return []*sir.Region{r}
			}
		}
		if ofSources.MatchString(inside) && t.Branch != nil {
			r, err := t.Branch(m, of, inside)
			if err != nil {
				failed = cmp.Or(failed, Errorf(CannotBeDone, pos, "%s: %v", id, err))
				return nil
			}
			return []*sir.Region{r}
		}
		failed = cmp.Or(failed, Errorf(NotFound, pos, "%s has no region %s%s", of.ID, inside[1:], regionsOf(inside, regions)))
		return nil
	})
	if len(found) > 0 {
		return found, nil
	}
	return nil, failed
}

// functionOf returns the function that contains the region with an id: the function with the longest
// id that is a prefix of it. inside is what follows. Without such a function it is the one that has the
// prefix as its name.
func functionOf(id string, m *Module) (of *sir.Region, inside string) {
	for _, find := range []func(string) *sir.Region{m.Units.ByID, m.onlyNamed} {
		for i := strings.LastIndexByte(id, '/'); i >= 0; i = strings.LastIndexByte(id[:i], '/') {
			if r := find(id[:i]); r != nil && r.Kind == sir.Function {
				return r, id[i:]
			}
		}
	}
	return nil, ""
}

// onlyNamed returns the function with a name after the program as a prefix, if only one has it: the
// structure of a source has names where it does not know symbols.
func (m *Module) onlyNamed(id string) *sir.Region {
	if found := m.namedLike(id); len(found) == 1 {
		return found[0]
	}
	return nil
}

// ofSources matches the ids of regions that only sources have.
var ofSources = regexp.MustCompile(`/(if|switch|block|scope|try|throw|return|stop|openmp|io|allocation|lock|spawn|deferred)[0-9]+(\.[a-z]+[0-9]*)?$`)

// regionsOf says what to name instead of a region that a function does not have: the line, or its outermost regions.
func regionsOf(inside string, regions []sir.Region) string {
	const most = 10
	if ofSources.MatchString(inside) {
		return ": only the structure of a source has such regions; name the line of its first statement, PROGRAM:FILE:LINE"
	}
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
