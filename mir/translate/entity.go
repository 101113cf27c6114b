package translate

import (
	"slices"
	"strings"

	"mirador/mir"
	"mirador/omis"
)

// The symbols for entities (MIR 4).
const (
	every   = "*"
	current = "?" // the entity that executes the region
)

// entity is an innermost entity of a request: it has one value, or one for each entity that it
// stands for. An id is a token, a symbol, or "" if the request names no entity of that kind.
type entity struct {
	kind                        mir.EntityKind // "" is the application as a whole
	site, node, process, thread string
	owner                       omis.Token // the process of a named thread
	pos                         mir.Position
}

// entities resolves the entities of a request, in the order of the request. If there are none,
// a region is measured for the threads that execute it (MIR 4), and other metrics for the
// application as a whole.
func entities(es []mir.Entity, region bool, t *Targets) ([]entity, Errors) {
	if len(es) == 0 {
		if region {
			return []entity{{kind: mir.Thread, site: t.Node.Site, node: string(t.Node.Token), process: current, thread: current}}, nil
		}
		return []entity{{}}, nil
	}
	w := walker{targets: t, region: region}
	for i := range es {
		w.walk(&es[i], entity{})
	}
	return w.found, w.errs
}

// assumed returns the entities that determine the layout of the measurement document. Where
// MIR 4 assumes the question mark, it omits communicators, and the site if it is unknown: they
// have no values.
func assumed(es []mir.Entity, region bool, site string) []mir.Entity {
	if len(es) > 0 || !region {
		return es
	}
	inner := []mir.Entity{{Kind: mir.Process, ID: current, Children: []mir.Entity{{Kind: mir.Thread, ID: current}}}}
	all := []mir.Entity{{Kind: mir.Node, ID: current, Children: inner}}
	if site != "" {
		all = []mir.Entity{{Kind: mir.Site, ID: current, Children: all}}
	}
	return all
}

type walker struct {
	targets *Targets
	region  bool
	found   []entity
	errs    Errors
}

func (w *walker) walk(e *mir.Entity, outer entity) {
	if err := w.check(e, outer); err != nil {
		w.errs = append(w.errs, err)
		return
	}
	here := outer
	here.kind, here.pos = e.Kind, e.Pos
	switch e.Kind {
	case mir.Site:
		here.site = w.targets.Node.Site // there is only one
	case mir.Node:
		here.node = e.ID
		if !named(e.ID) {
			here.node = string(w.targets.Node.Token) // there is only one node
		}
	case mir.Process:
		here.process = e.ID
	case mir.Thread:
		here.thread = e.ID
		if p := w.targets.owner(e.ID); p != nil {
			here.owner = p.Token
		}
	}
	if len(e.Children) == 0 {
		w.found = append(w.found, here)
		return
	}
	for i := range e.Children {
		w.walk(&e.Children[i], here)
	}
}

func (w *walker) check(e *mir.Entity, outer entity) *Error {
	switch {
	case e.Kind == mir.Communicator:
		return Errorf(CannotBeDone, e.Pos, "no communicator %s: message-passing platforms (MPI, PVM) report communicators, and the processes of this application are observed as native programs; name processes instead", e.ID)
	case e.Kind == mir.Site && w.targets.Node.Site == "":
		return Errorf(CannotBeDone, e.Pos, "no site %s: this gateway was started without the name of its site (mirador serve --site NAME); leave \"site\" out", e.ID)
	case e.ID == current && !w.region:
		return Errorf(Invalid, e.Pos, "%s %q is the one that executes a code region, and the request has no codeRegion", e.Kind, current)
	case e.ID == every || e.ID == current:
		return nil
	}
	t := w.targets
	switch e.Kind {
	case mir.Site:
		if e.ID == t.Node.Site {
			return nil
		}
	case mir.Node:
		if e.ID == string(t.Node.Token) || e.ID == t.Node.Name {
			return nil
		}
	case mir.Process:
		if t.process(e.ID) != nil {
			return nil
		}
	case mir.Thread:
		p := t.owner(e.ID)
		switch {
		case p == nil:
		case named(outer.process) && string(p.Token) != outer.process:
			return Errorf(NotFound, e.Pos, "thread %s is not in process %s, but in %s", e.ID, outer.process, p.Token)
		default:
			return nil
		}
	}
	return Errorf(NotFound, e.Pos, "no %s %s; there %s", e.Kind, e.ID, listing(t.ids(e.Kind)))
}

func listing(ids []string) string {
	const most = 8
	switch {
	case len(ids) == 0:
		return "are none"
	case len(ids) == 1:
		return "is " + ids[0]
	case len(ids) > most:
		return "are " + strings.Join(ids[:most], ", ") + " …"
	}
	return "are " + strings.Join(ids, ", ")
}

// named reports whether an id is a token, not a symbol or "".
func named(id string) bool { return id != "" && id != every && id != current }

// covers reports whether a measurement in a thread of a process belongs to e.
func (e *entity) covers(process, thread omis.Token) bool {
	return (!named(e.process) || e.process == string(process)) && (!named(e.thread) || e.thread == string(thread))
}

// scope tells what to watch in one process: the whole process or some of its threads.
type scope struct {
	process omis.Token
	whole   bool
	threads []omis.Token
}

// tokens returns the token list for an event.
func (s scope) tokens() []omis.Token {
	if s.whole {
		return []omis.Token{s.process}
	}
	return s.threads
}

// scopes merges the entities into one scope for each process. If an entity covers a whole
// process, its threads are not listed separately: an object must not appear twice in a list
// (OMIS 7.2.3).
func scopes(es []entity, t *Targets) []scope {
	var all []scope
	for i := range t.Processes {
		p := &t.Processes[i]
		s := scope{process: p.Token}
		for j := range es {
			s.add(&es[j], t)
		}
		if s.whole || len(s.threads) > 0 {
			all = append(all, s)
		}
	}
	return all
}

func (s *scope) add(e *entity, t *Targets) {
	if named(e.process) && e.process != string(s.process) {
		return
	}
	if !named(e.thread) {
		s.whole = true
		return
	}
	if p := t.owner(e.thread); p.Token == s.process && !slices.Contains(s.threads, omis.Token(e.thread)) {
		s.threads = append(s.threads, omis.Token(e.thread))
	}
}
