package prototype

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
)

// Parse parses the prototypes and typedefs of a file. It continues after errors and
// returns all of them as joined *Errors, together with the functions that are correct.
func Parse(text string) ([]Func, error) {
	tokens, bad := scan(text)
	if bad != nil {
		return nil, bad
	}
	p := &parser{text: text, tokens: tokens, types: maps.Clone(typeNames)}
	var functions []Func
	var errs []error
	for p.peek().text != "" {
		f, err := p.declaration()
		switch {
		case err != nil:
			errs = append(errs, err)
			p.skip()
		case f != nil:
			functions = append(functions, *f.Normalize())
		}
	}
	return functions, errors.Join(errs...)
}

// ParseOne parses a text that is one prototype.
func ParseOne(text string) (*Func, error) {
	functions, err := Parse(text)
	if err != nil {
		return nil, err
	}
	if len(functions) != 1 {
		return nil, errorAt(text, 0, fmt.Sprintf("%d prototypes where one is expected", len(functions)))
	}
	return &functions[0], nil
}

type parser struct {
	text   string
	tokens []token
	at     int
	types  map[string]Type // including those that the file declares
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.text != "" {
		p.at++
	}
	return t
}

func (p *parser) accept(text string) bool {
	if p.peek().text != text {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(text string) error {
	if !p.accept(text) {
		return p.failed(p.peek(), "%q is expected, not %s", text, describe(p.peek()))
	}
	return nil
}

func describe(t token) string {
	if t.text == "" {
		return "the end"
	}
	return strconv.Quote(t.text)
}

func (p *parser) failed(at token, format string, args ...any) error {
	return errorAt(p.text, at.pos, fmt.Sprintf(format, args...))
}

// skip moves past the next semicolon.
func (p *parser) skip() {
	for t := p.next(); t.text != "" && t.text != ";"; t = p.next() {
	}
}

// declaration parses a prototype, or a typedef, which it stores.
func (p *parser) declaration() (*Func, error) {
	if p.accept("typedef") {
		return nil, p.typedef()
	}
	result, err := p.typeName()
	if err != nil {
		return nil, err
	}
	name := p.next()
	if !name.isName() {
		return nil, p.failed(name, "the name of a function is expected, not %s", describe(name))
	}
	f := &Func{Name: name.text, Result: result}
	if err := p.params(f); err != nil {
		return nil, err
	}
	return f, p.expect(";")
}

func (p *parser) typedef() error {
	t, err := p.typeName()
	if err != nil {
		return err
	}
	name := p.next()
	if !name.isName() {
		return p.failed(name, "the name of a type is expected, not %s", describe(name))
	}
	p.types[name.text] = t
	return p.expect(";")
}

// lengthOf is the length of a parameter, to be resolved when all parameters are known.
type lengthOf struct {
	param int
	name  token
}

func (p *parser) params(f *Func) error {
	if err := p.expect("("); err != nil {
		return err
	}
	if p.accept(")") {
		return nil
	}
	if p.peek().text == "void" && p.tokens[p.at+1].text == ")" {
		p.at += 2
		return nil
	}
	var lengths []lengthOf
	for {
		if p.accept("...") {
			f.Variadic = true
			break
		}
		param, name, err := p.param()
		if err != nil {
			return err
		}
		if name.text != "" {
			lengths = append(lengths, lengthOf{len(f.Params), name})
		}
		f.Params = append(f.Params, param)
		if !p.accept(",") {
			break
		}
	}
	if err := p.expect(")"); err != nil {
		return err
	}
	return p.resolve(f, lengths)
}

// resolve finds the parameters that are lengths of others.
func (p *parser) resolve(f *Func, lengths []lengthOf) error {
	for _, l := range lengths {
		of := &f.Params[l.param].Length
		of.Param = -1
		for i, other := range f.Params {
			if other.Name == l.name.text {
				of.Param = i
			}
		}
		if of.Param < 0 {
			return p.failed(l.name, "%s has no parameter %s", f.Name, l.name.text)
		}
		t := f.Params[of.Param].Type
		if of.Kind == AtParam && t.Kind == Pointer {
			t = *t.Elem
		}
		if t.Kind != Integer {
			return p.failed(l.name, "%s is not an integer, so it cannot be a length", l.name.text)
		}
	}
	return nil
}

// param parses one parameter; length is the name of the parameter with its length, if
// any.
func (p *parser) param() (param Param, length token, err error) {
	if d, ok := directions[p.peek().text]; ok {
		at := p.next()
		param.Direction = d
		if p.accept("(") {
			if param.Length, length, err = p.length(); err != nil {
				return param, length, err
			}
		}
		defer func() {
			if err == nil && param.Type.Kind != Pointer {
				err = p.failed(at, "%s is allowed only before a pointer", at.text)
			}
		}()
	}
	at := p.peek()
	if param.Type, err = p.typeName(); err != nil {
		return param, length, err
	}
	if param.Name, err = p.declarator(&param.Type); err != nil {
		return param, length, err
	}
	if param.Type.Kind == Aggregate || param.Type.Kind == Void {
		err = p.failed(at, "the size of %s is not known: pass a pointer, or declare it with typedef", at.text)
	}
	return param, length, err
}

var directions = map[string]Direction{"in": In, "out": Out, "inout": In | Out}

func (p *parser) length() (l Length, name token, err error) {
	l = Length{Kind: Constant, Scale: 1}
	if p.peek().isNumber() {
		t := p.next()
		n, err := strconv.ParseUint(t.text, 0, 31)
		if err != nil || n == 0 {
			return l, name, p.failed(t, "%s is not a length", t.text)
		}
		l.Scale = int(n)
		if p.accept(")") {
			return l, name, nil
		}
		if err := p.expect("*"); err != nil {
			return l, name, err
		}
	}
	l.Kind = OfParam
	if p.accept("*") {
		l.Kind = AtParam
	}
	name = p.next()
	switch {
	case !name.isName():
		return l, name, p.failed(name, "a length is expected, not %s", describe(name))
	case name.text == "result" && l.Kind == OfParam:
		l.Kind, name = OfResult, token{}
	}
	return l, name, p.expect(")")
}

// declarator parses the name of a parameter, if it has one, and the array or function
// syntax around it: arrays and functions are passed as pointers.
func (p *parser) declarator(t *Type) (name string, err error) {
	if p.accept("(") { // (*name)(parameters), (*name)[n]
		if err := p.expect("*"); err != nil {
			return "", err
		}
		if p.peek().isName() {
			name = p.next().text
		}
		if err := p.expect(")"); err != nil {
			return "", err
		}
		*t = address
		return name, p.suffix(nil)
	}
	if p.peek().isName() {
		name = p.next().text
	}
	return name, p.suffix(t)
}

// suffix skips parameters and array sizes; an array changes t to a pointer.
func (p *parser) suffix(t *Type) error {
	for array := true; ; array = false {
		switch open := p.peek(); open.text {
		case "[":
			p.next()
			for p.peek().isName() || p.peek().isNumber() {
				p.next()
			}
			if err := p.expect("]"); err != nil {
				return err
			}
			if t != nil && array {
				*t = PointerTo(*t)
			}
		case "(":
			if t != nil {
				return p.failed(open, "a function is passed as a pointer: (*name)(…)")
			}
			if err := p.params(&Func{}); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}
