package syntax

import "mirador/omis"

// Parse reads a request. The error, if any, has type Errors. The request then contains the
// parts that could be parsed, so that they can be checked. A call that could not be parsed has
// no name.
func Parse(text string) (*omis.Request, error) {
	if len(text) > MaxText {
		return &omis.Request{}, Errors{{Msg: "the request is longer than 4 MiB"}}
	}
	p := parser{scanner: scanner{text: text}}
	p.stack = p.room[:0]
	// An ordinary request has about one value per eight characters.
	p.slab = make([]omis.Value, min(len(text)/8+1, 256))
	r := p.request()
	if len(p.errs) > 0 {
		return r, p.errs
	}
	return r, nil
}

// frame is the memory of an ordinary request, in one allocation.
type frame struct {
	request omis.Request
	event   omis.Call
	actions [3]omis.Call
}

// parser reads the values of a list onto a stack, because their number is known only at the
// end of the list. It then copies them to a part of a slab. So a request needs few
// allocations.
type parser struct {
	scanner
	stack []omis.Value
	room  [8]omis.Value
	slab  []omis.Value
	count int
	trust bool // the text is a reply: do not limit the number of values
}

func (p *parser) request() *omis.Request {
	f := &frame{}
	r := &f.request
	p.next()
	if p.kind != ':' {
		p.call(&f.event)
		r.Event = &f.event
	}
	if p.kind != ':' {
		p.fail(p.pos, `expected ":" before the action list, found %s`, p.found())
		return r
	}
	p.next()
	closing := end
	if p.kind == '{' {
		r.Locked = true
		closing = '}'
		p.next()
	}
	r.Actions = p.actions(f.actions[:0], closing)
	if r.Locked && p.kind == '}' {
		p.next()
		if p.kind != end {
			p.fail(p.pos, `nothing may follow the "}" of a locked action list, found %s`, p.found())
		}
	}
	return r
}

func (p *parser) actions(list []omis.Call, closing kind) []omis.Call {
	if p.kind == closing {
		p.fail(p.pos, "the action list is empty")
		return nil
	}
	for {
		list = append(list, omis.Call{})
		before := p.at
		a := &list[len(list)-1]
		p.call(a)
		if p.kind == ';' {
			a.Barrier = true
			p.next()
			if p.kind == closing {
				p.fail(p.pos, `no action after ";"`)
			}
		}
		switch {
		case p.kind == closing:
			return list
		case p.kind == end:
			p.fail(p.pos, `expected "}" at the end of the locked action list`)
			return list
		case p.at == before || len(p.errs) >= MaxErrors:
			return list
		}
	}
}

// call parses a service with its parameters. After an error it continues after the parameters,
// in order to find the errors of other actions, too.
func (p *parser) call(c *omis.Call) {
	errs := len(p.errs)
	if p.kind != ident {
		p.fail(p.pos, "expected the name of a service, found %s", p.found())
		p.recover()
		return
	}
	c.Service, c.Pos = p.word, p.pos
	p.next()
	if p.kind != '(' {
		p.fail(p.pos, `expected "(" after %s, found %s`, c.Service, p.found())
		*c = omis.Call{}
		p.recover()
		return
	}
	p.next()
	c.Args = p.values(')', 0)
	if len(p.errs) > errs {
		*c = omis.Call{}
		p.recover()
		return
	}
	p.next()
}

// recover skips the next ")" and everything before it.
func (p *parser) recover() {
	for p.kind != end && p.kind != ')' {
		p.next()
	}
	if p.kind == ')' {
		p.next()
	}
}

// values parses values up to the closing element, which remains the current one.
func (p *parser) values(closing kind, depth int) []omis.Value {
	if p.kind == closing {
		return nil
	}
	if depth > MaxDepth {
		p.fail(p.pos, "lists are nested deeper than %d", MaxDepth)
		return nil
	}
	bottom, errs := len(p.stack), len(p.errs)
	for {
		p.push(depth)
		if len(p.errs) > errs {
			break
		}
		p.next()
		if p.kind == closing {
			break
		}
		if p.kind != ',' {
			p.fail(p.pos, `expected "," or %s, found %s`, closing, p.found())
			break
		}
		p.next()
	}
	vs := p.cut(len(p.stack) - bottom)
	copy(vs, p.stack[bottom:])
	p.stack = p.stack[:bottom]
	return vs
}

// push parses one value and appends it to the stack.
func (p *parser) push(depth int) {
	switch p.kind {
	case constant:
		p.stack = append(p.stack, p.value)
	case ident:
		p.stack = append(p.stack, omis.Value{Kind: omis.KindToken, Str: p.word, Pos: p.pos})
	case param:
		p.stack = append(p.stack, omis.Value{Kind: omis.KindParam, Str: p.word, Pos: p.pos})
	case '[':
		pos := p.pos
		p.next()
		list := p.values(']', depth+1)
		p.stack = append(p.stack, omis.Value{Kind: omis.KindList, List: list, Pos: pos})
	default:
		p.fail(p.pos, "expected a value, found %s", p.found())
	}
}

// cut takes n values from the slab.
func (p *parser) cut(n int) []omis.Value {
	if p.count += n; p.count > MaxValues && !p.trust {
		p.fail(p.pos, "more than %d values", MaxValues)
		return nil
	}
	if n > len(p.slab) {
		p.slab = make([]omis.Value, max(n, 8))
	}
	vs := p.slab[:n:n]
	p.slab = p.slab[n:]
	return vs
}

// found describes the current element for a message.
func (p *parser) found() string {
	switch p.kind {
	case ident:
		return p.word
	case param:
		return "$" + p.word
	case constant:
		return "a value of type " + p.value.Kind.String()
	case broken:
		return "the error above"
	}
	return p.kind.String()
}
