package service

import (
	"fmt"

	"mirador/omis"
)

// Fault is an error in a request that is found before its execution.
type Fault struct {
	Pos    int
	Status omis.Status
	Msg    string
}

func (f Fault) Error() string { return fmt.Sprintf("position %d: %s", f.Pos, f.Msg) }

// maxFaults limits the faults of one request. A hostile request could have one every few
// bytes, and finding the nearest name for each needs a pass over the whole table.
const maxFaults = 100

// Check compares a request with the table and returns all faults. It skips calls without a
// name, because the parser has reported them.
func (c *Catalog) Check(r *omis.Request) []Fault {
	k := checker{catalog: c}
	if r.Event != nil {
		k.event(r.Event)
	}
	for i := range r.Actions {
		if len(k.faults) >= maxFaults {
			break
		}
		k.action(&r.Actions[i])
	}
	return k.faults
}

type checker struct {
	catalog *Catalog
	source  *Service // the event service; nil in an unconditional request
	isEvent bool     // the event definition is being checked
	unclear bool     // the event service is unknown, and so are its context parameters
	faults  []Fault
}

func (k *checker) fail(pos int, s omis.Status, format string, args ...any) {
	k.faults = append(k.faults, Fault{Pos: pos, Status: s, Msg: fmt.Sprintf(format, args...)})
}

func (k *checker) event(call *omis.Call) {
	s := k.lookup(call)
	k.unclear = s == nil || s.Kind != Event
	if s == nil {
		return
	}
	if s.Kind != Event {
		k.fail(call.Pos, omis.UnknownService, "%s is an action: it is not allowed before the colon", s.Name)
		return
	}
	k.isEvent = true
	k.args(s, call)
	k.isEvent = false
	k.source = s
}

func (k *checker) action(call *omis.Call) {
	s := k.lookup(call)
	if s == nil {
		return
	}
	if s.Kind == Event {
		k.fail(call.Pos, omis.UnknownService, "%s is an event: it is allowed only before the colon", s.Name)
		return
	}
	k.args(s, call)
}

func (k *checker) lookup(call *omis.Call) *Service {
	s := k.catalog.Lookup(call.Service)
	switch {
	case call.Service == "":
		return nil
	case s == nil:
		hint := ""
		if near := k.catalog.Nearest(call.Service); near != "" {
			hint = fmt.Sprintf(" (did you mean %s?)", near)
		}
		k.fail(call.Pos, omis.UnknownService, "there is no service %s%s", call.Service, hint)
		return nil
	case s.Support.Level == Unsupported:
		k.fail(call.Pos, omis.UnsupportedService, "%s is not supported: %s", s.Name, s.Support.Reason)
		return nil
	}
	return s
}

func (k *checker) args(s *Service, call *omis.Call) {
	if len(call.Args) != len(s.Params) {
		k.fail(call.Pos, omis.ParameterError, "%s takes %d parameters (%s), not %d",
			s.Name, len(s.Params), prototype(s.Params), len(call.Args))
		return
	}
	for i := range call.Args {
		k.arg(s, &s.Params[i], &call.Args[i])
	}
}

// arg checks one argument. A single token is accepted for a list of tokens, and a list of one
// token for a token: OMIS itself uses both (thread_stop($proc) in 5.3.2,
// user_event_raise([e_1],[],0) against 8.2.2).
func (k *checker) arg(s *Service, p *Param, v *omis.Value) {
	switch {
	case p.List && v.Kind == omis.KindList:
		for i := range v.List {
			k.element(s, p, &v.List[i])
		}
	case p.Type == Token && v.Kind == omis.KindList:
		if len(v.List) != 1 {
			k.fail(v.Pos, omis.TypeMismatch, "%s of %s is one token, not a list of %d", p.Name, s.Name, len(v.List))
			return
		}
		k.element(s, p, &v.List[0])
	case p.List && p.Type != Token && v.Kind != omis.KindParam:
		k.fail(v.Pos, omis.TypeMismatch, "%s of %s is a list of type %s*, not %s", p.Name, s.Name, p.Type, article(v.Kind))
	default:
		k.element(s, p, v)
	}
}

func (k *checker) element(s *Service, p *Param, v *omis.Value) {
	switch {
	case v.Kind == omis.KindParam:
		k.contextParam(s, p, v)
	case !fits(p.Type, v.Kind):
		k.fail(v.Pos, omis.TypeMismatch, "%s of %s is of type %s, not %s", p.Name, s.Name, p.Type, article(v.Kind))
	case p.Type == Token && p.Class != "" && !k.convertible(v.Token().Class(), p.Class):
		k.fail(v.Pos, omis.TypeMismatch, "%s of %s is a token of class %s_, not %s", p.Name, s.Name, p.Class, v.Token())
	}
}

func (k *checker) contextParam(s *Service, p *Param, v *omis.Value) {
	if k.unclear {
		return
	}
	if k.isEvent || k.source == nil {
		k.fail(v.Pos, omis.UnknownECP, "$%s has no value here: only the actions of an event have context parameters", v.Str)
		return
	}
	given, ok := k.source.ContextParam(v.Str)
	switch {
	case !ok:
		k.fail(v.Pos, omis.UnknownECP, "%s has no event context parameter $%s", k.source.Name, v.Str)
	case given.Type != Any && p.Type != Any && given.Type != p.Type && (given.Type != Integer || p.Type != Floating):
		k.fail(v.Pos, omis.TypeMismatch, "%s of %s is of type %s, but $%s is of type %s", p.Name, s.Name, p.Type, v.Str, given.Type)
	}
}

// ContextParam returns the event context parameter with a name.
func (s *Service) ContextParam(name string) (Param, bool) {
	for _, p := range Standard() {
		if p.Name == name {
			return p, true
		}
	}
	for _, p := range s.Context {
		if p.Name == name {
			return p, true
		}
	}
	if _, ok := OpenIndex(name); ok && s.OpenContext {
		return Param{Name: name, Type: Any}, true
	}
	return Param{}, false
}

// OpenIndex returns the index of par1, par2, … in Occurrence.Params.
func OpenIndex(name string) (int, bool) {
	n := 0
	if len(name) < 4 || len(name) > 8 || name[:3] != "par" || name[3] == '0' {
		return 0, false
	}
	for _, c := range []byte(name[3:]) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n - 1, true
}

func fits(t Type, k omis.Kind) bool {
	switch t {
	case Integer:
		return k == omis.KindInt
	case Floating:
		return k == omis.KindFloat || k == omis.KindInt
	case String:
		return k == omis.KindString
	case Binary:
		return k == omis.KindBinary
	case Token:
		return k == omis.KindToken
	}
	return true
}

// convertible reports whether a token of one class may be used for objects of another class
// (OMIS 7.2.2). It accepts tokens of unknown classes; the execution reports each of them as an
// unknown object.
func (k *checker) convertible(from, to omis.Class) bool {
	if from == to || from == omis.ClassUndefined || !k.catalog.HasClass(from) {
		return true
	}
	if isSystem(from) && isSystem(to) {
		return true
	}
	// A class of an extension may convert to system objects; the engine decides.
	return !isBasic(from) && isSystem(to)
}

func isSystem(c omis.Class) bool {
	switch c {
	case omis.ClassNode, omis.ClassProcess, omis.ClassThread, omis.ClassQueue, omis.ClassMessage:
		return true
	}
	return false
}

func isBasic(c omis.Class) bool {
	return isSystem(c) || c == omis.ClassCSR || c == omis.ClassUserEvent || c == omis.ClassUndefined
}

func article(k omis.Kind) string {
	switch k {
	case omis.KindInt, omis.KindParam:
		return "an " + k.String()
	case omis.KindFloat:
		return "a floating value"
	case omis.KindBinary:
		return "binary data"
	}
	return "a " + k.String()
}

func prototype(ps []Param) string {
	if len(ps) == 0 {
		return "none"
	}
	s := ""
	for i, p := range ps {
		if i > 0 {
			s += ", "
		}
		s += p.String()
	}
	return s
}

// Accepts checks a value whose type was unknown before the execution: an event context
// parameter of an event with OpenContext.
func (p Param) Accepts(v omis.Value) error {
	if p.List && v.Kind == omis.KindList {
		for _, e := range v.List {
			if !fits(p.Type, e.Kind) {
				return fmt.Errorf("%s is a list of type %s*, it must not contain %s", p.Name, p.Type, article(e.Kind))
			}
		}
		return nil
	}
	if p.Type == Token && v.Kind == omis.KindList && len(v.List) == 1 {
		v = v.List[0]
	}
	if !fits(p.Type, v.Kind) || p.List && p.Type != Token {
		return fmt.Errorf("%s is of type %s, not %s", p.Name, p.Type, article(v.Kind))
	}
	return nil
}
