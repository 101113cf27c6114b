package syntax

import (
	"strconv"
	"strings"

	"mirador/omis"
)

// PrintReply writes a reply in OMIS notation, one line for each object result:
//
//	INDEX STATUS(number) [obj_list] values
//
// The number is omitted after OMIS_OK, and the values if there are none. An error has its
// message as a string instead of values. A service without any object result is a line with
// only its index.
func PrintReply(r omis.Reply) string {
	b := make([]byte, 0, 256)
	for i, service := range r {
		if len(service) == 0 {
			b = strconv.AppendInt(b, int64(i), 10)
			b = append(b, '\n')
		}
		for _, o := range service {
			b = strconv.AppendInt(b, int64(i), 10)
			b = appendResult(b, o)
			b = append(b, '\n')
		}
	}
	return string(b)
}

func appendResult(b []byte, o omis.ObjectResult) []byte {
	b = append(b, ' ')
	b = append(b, o.Status.String()...)
	if o.Status != omis.OK {
		b = append(b, '(')
		b = strconv.AppendInt(b, int64(o.Status), 10)
		b = append(b, ')')
	}
	b = append(b, " ["...)
	for i, t := range o.Objects {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, t...)
	}
	b = append(b, ']')
	switch {
	case o.Status.IsError() && o.Msg != "":
		b = append(b, ' ')
		b = appendQuoted(b, o.Msg)
	case len(o.Values) > 0:
		b = append(b, ' ')
		b = AppendValues(b, o.Values)
	}
	return b
}

// ParseReply reads the output of PrintReply. The error, if any, has type Errors.
func ParseReply(text string) (omis.Reply, error) {
	p := parser{scanner: scanner{text: text}, trust: true}
	p.stack = p.room[:0]
	r := omis.Reply{}
	for p.next(); p.kind != end && len(p.errs) == 0; {
		r = p.resultLine(r)
	}
	if len(p.errs) > 0 {
		return nil, p.errs
	}
	return r, nil
}

// resultLine parses a line that begins at the current element and adds it to the reply.
func (p *parser) resultLine(r omis.Reply) omis.Reply {
	index, ok := p.value.Int64()
	if p.kind != constant || !ok || index < 0 || index > int64(len(r)) || index < int64(len(r))-1 {
		p.fail(p.pos, "expected the index of a service, found %s", p.found())
		return r
	}
	if int(index) == len(r) {
		r = append(r, omis.ServiceResult{})
	}
	if p.lineEnds() {
		p.next()
		return r
	}
	o := p.objectResult()
	r[index] = append(r[index], o)
	return r
}

func (p *parser) objectResult() omis.ObjectResult {
	var o omis.ObjectResult
	p.next()
	if p.kind != ident {
		p.fail(p.pos, "expected a status, found %s", p.found())
		return o
	}
	if o.Status = p.status(); len(p.errs) > 0 {
		return o
	}
	if p.kind != '[' {
		p.fail(p.pos, `expected "[" before the objects, found %s`, p.found())
		return o
	}
	p.next()
	for _, v := range p.values(']', 0) {
		if v.Kind != omis.KindToken {
			p.fail(v.Pos, "expected the token of an object, found a value of type %s", v.Kind)
			return o
		}
		o.Objects = append(o.Objects, v.Token())
	}
	if len(p.errs) > 0 {
		return o
	}
	if p.lineEnds() {
		p.next()
		return o
	}
	p.next()
	p.resultValues(&o)
	return o
}

// resultValues parses values up to the end of the line.
func (p *parser) resultValues(o *omis.ObjectResult) {
	for {
		p.push(0)
		if len(p.errs) > 0 {
			return
		}
		o.Values = append(o.Values, p.stack[0])
		p.stack = p.stack[:0]
		more := !p.lineEnds()
		p.next()
		if !more {
			break
		}
		if p.kind != ',' {
			p.fail(p.pos, `expected "," or the end of the line, found %s`, p.found())
			return
		}
		p.next()
	}
	if o.Status.IsError() && len(o.Values) == 1 && o.Values[0].Kind == omis.KindString {
		o.Msg, o.Values = o.Values[0].Str, nil
	}
}

// status parses NAME|OMIS_FATAL(number). If there is a number, the name is ignored.
func (p *parser) status() omis.Status {
	rest := p.text[p.pos:]
	stop := strings.IndexAny(rest, "( [\n")
	if stop < 0 {
		stop = len(rest)
	}
	name := rest[:stop]
	p.at = p.pos + stop
	p.next()
	if p.kind == '(' {
		p.next()
		n, ok := p.value.Int64()
		if p.kind != constant || !ok {
			p.fail(p.pos, "expected the number of the status, found %s", p.found())
		}
		p.next()
		if p.kind != ')' {
			p.fail(p.pos, `expected ")", found %s`, p.found())
		}
		p.next()
		return omis.Status(n)
	}
	s, ok := statusNamed(name)
	if !ok {
		p.fail(p.pos, "unknown status %s", name)
	}
	return s
}

func statusNamed(name string) (omis.Status, bool) {
	plain, fatal := strings.CutSuffix(name, "|OMIS_FATAL")
	for s := omis.OK; s <= omis.InternalError; s += 2 {
		if s.String() == plain {
			if fatal {
				s |= omis.Fatal
			}
			return s, true
		}
	}
	return omis.UnspecifiedError, plain == omis.UnspecifiedError.String()
}

// lineEnds reports whether the current element is the last of its line.
func (p *parser) lineEnds() bool {
	for at := p.at; at < len(p.text); at++ {
		switch {
		case p.text[at] == '\n':
			return true
		case classOf[p.text[at]]&isBlank == 0:
			return false
		}
	}
	return true
}
