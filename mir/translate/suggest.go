package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mirador/omis/syntax"
	"mirador/sir"
)

// suggestions are names similar to one of a request.
type suggestions struct {
	name string
	near []suggestion
}

type suggestion struct {
	text string
	far  int
}

// consider adds a text if the distance of one of its names is at most limit. A prefix of a
// name has distance 1, because people abbreviate names.
func (s *suggestions) consider(limit int, text string, names ...string) {
	far := limit + 1
	for _, name := range names {
		far = min(far, syntax.Distance(s.name, name, limit))
		if len(s.name) > 2 && strings.HasPrefix(name, s.name) {
			far = min(far, 1)
		}
	}
	if far > limit {
		return
	}
	i := slices.IndexFunc(s.near, func(c suggestion) bool { return c.text == text })
	if i < 0 {
		i, s.near = len(s.near), append(s.near, suggestion{text, far})
	}
	s.near[i].far = min(s.near[i].far, far)
}

// String asks for up to three of the nearest texts, in the order of their addition if they are
// equally near. It returns "" if there are none.
func (s *suggestions) String() string {
	if len(s.near) == 0 {
		return ""
	}
	slices.SortStableFunc(s.near, func(a, b suggestion) int { return cmp.Compare(a.far, b.far) })
	var texts []string
	for _, c := range s.near[:min(3, len(s.near))] {
		texts = append(texts, c.text)
	}
	return "; did you mean " + strings.Join(texts, " or ") + "?"
}

// didYouMean suggests regions with a similar id or name. Among equally similar regions, the
// regions of the main module come first.
func didYouMean(name string, t *Targets) string {
	regions := t.gather(func(m *Module) []*sir.Region { return slices.Collect(m.Units.All()) })
	if len(regions) == 0 {
		return ": the structure of no program of the application could be read"
	}
	s := suggestions{name: name}
	_, function, _ := strings.Cut(name, ":")
	for _, r := range regions {
		text := r.ID
		if !strings.HasSuffix(r.ID, ":"+r.Name) {
			text += " (" + r.Name + ")"
		}
		names := []string{r.Name, r.ID, r.Name[strings.LastIndexAny(r.Name, ".:")+1:]} // the last one without its package or class
		if r.Name == function {
			names = append(names, name) // the right function of another module
		}
		s.consider(1+len(name)/4, text, names...)
	}
	why := ""
	if !strings.Contains(name, ":") {
		why = nameless(regions[0].ID, t)
	}
	return cmp.Or(why+s.String(), nameless(name, t), "; a sirreq lists the units and their ids") + interpreted(regions)
}

// interpreted says of programs in Java and Python that their methods and functions are not those of the process.
func interpreted(regions []regionCopy) string {
	for _, r := range regions {
		switch {
		case strings.HasPrefix(r.ID, "libjvm.so:"):
			return "; the methods of a program in Java are units only if its sources are woven"
		case strings.HasPrefix(r.ID, "libpython"), strings.HasPrefix(r.ID, "python"):
			return "; the functions of a program in Python are no units"
		}
	}
	return ""
}

// nameless says that the program of a unit has no symbols, "" if it has some.
func nameless(id string, t *Targets) string {
	program, _, _ := strings.Cut(id, ":")
	named, others := 0, 0
	for _, r := range t.gather(func(m *Module) []*sir.Region { return slices.Collect(m.Units.All()) }) {
		switch {
		case !strings.HasPrefix(r.ID, program+":"):
		case r.HasName():
			named++
		default:
			others++
		}
	}
	if others == 0 || named > others {
		return ""
	}
	return fmt.Sprintf(": %s has no symbols, so that %d of its functions are called %s and their address; install its debug symbols, or set DEBUGINFOD_URLS for the gateway", program, others, sir.Unnamed)
}

// nearMetrics suggests metrics with similar names, of all name spaces. Counters of the processor are
// also known by the names that the command perf uses.
func nearMetrics(name string) string {
	_, name = splitSpace(name)
	before, after, parts := strings.Cut(name, ":")
	names := []string{name}
	if parts { // a misspelt name space, or the parameter of a misspelt metric
		names = append(names, before, after)
	}
	var s suggestions
	catalog := Catalog()
	for i, name := range names {
		s.name = spelling(name)
		for _, m := range catalog {
			text := m.spelled()
			if m.byCall && i == 1 && len(callsOf(after)) > 0 {
				text += ":" + after
			}
			s.consider(1+len(s.name)/3, text, spelling(m.Name), spelling(m.meter))
		}
	}
	return s.String()
}

// spelling returns a name in the spelling of metrics' names, without the prefix of PAPI's presets.
func spelling(name string) string {
	return strings.TrimPrefix(strings.ToUpper(strings.ReplaceAll(name, "-", "_")), "PAPI_")
}
