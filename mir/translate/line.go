package translate

import (
	"errors"
	"strconv"
	"strings"

	"mirador/mir"
	"mirador/sir"
)

// findLine finds a line of the source by its file and number, PROGRAM:FILE:LINE, where the program may
// be left out. It returns none if the name is not that of a line.
func findLine(name string, pos mir.Position, t *Targets) ([]regionCopy, *Error) {
	at := strings.LastIndexByte(name, ':')
	line, err := strconv.Atoi(name[at+1:])
	if at <= 0 || err != nil || line <= 0 || t.Line == nil {
		return nil, nil
	}
	whole := name[:at]
	var missing, failed error
	found := t.gather(func(m *Module) []*sir.Region {
		file, inside := strings.CutPrefix(whole, m.Units.Base()+":")
		if !inside && strings.Contains(whole, ":") || file == "" {
			return nil
		}
		r, err := t.Line(m, file, line)
		switch lost := (*sir.LineError)(nil); {
		case errors.As(err, &lost):
			if missing == nil || lost.Line > 0 || inside {
				missing = err
			}
			return nil
		case err != nil:
			failed = err
			return nil
		case r == nil:
			return nil
		}
		return []*sir.Region{r}
	})
	switch others := distinct(found); {
	case len(others) > 1:
		return nil, Errorf(NotFound, pos, "%d programs have code of %s, use an id: %s", len(others), name, strings.Join(others, ", "))
	case failed != nil:
		return nil, Errorf(CannotBeDone, pos, "%s: %v", name, failed)
	case len(found) == 0 && missing != nil:
		return nil, Errorf(NotFound, pos, "%s: %v", name, missing)
	}
	return found, nil
}

// findInlined finds all places where a function is inlined that has no code of its own.
func findInlined(name string, pos mir.Position, t *Targets) ([]regionCopy, *Error) {
	if t.Inlined == nil {
		return nil, nil
	}
	var failed error
	found := t.gather(func(m *Module) []*sir.Region {
		own, inside := strings.CutPrefix(name, m.Units.Base()+":")
		if !inside || strings.HasPrefix(own, ":") {
			own = name
		}
		r, err := t.Inlined(m, own)
		if err != nil {
			failed = err
		}
		if r == nil {
			return nil
		}
		return []*sir.Region{r}
	})
	switch others := distinct(found); {
	case len(others) > 1:
		return nil, Errorf(NotFound, pos, "%s is inlined into %d programs, use an id: %s", name, len(others), strings.Join(others, ", "))
	case len(found) == 0 && failed != nil:
		return nil, Errorf(CannotBeDone, pos, "%s: %v", name, failed)
	}
	return found, nil
}
