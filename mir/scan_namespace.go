package mir

import "strings"

// scopes are the namespace declarations in scope, innermost last.
type scopes []binding

type binding struct {
	prefix, space string
	depth         int // of the element that declares it
}

// leave removes the declarations of the element at a depth.
func (b *scopes) leave(depth int) {
	for len(*b) > 0 && (*b)[len(*b)-1].depth >= depth {
		*b = (*b)[:len(*b)-1]
	}
}

func (b scopes) lookup(prefix string) (string, bool) {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i].prefix == prefix {
			return b[i].space, true
		}
	}
	if prefix == "xml" {
		return xmlNamespace, true
	}
	return "", prefix == ""
}

// resolve sets the namespaces of an element and its attributes. It runs before the scanner
// enters the element, so the element's depth is depth+1.
func (s *scanner) resolve(index int32, start int) bool {
	e := &s.elements[index]
	attributes := s.attributes[e.first:e.last]
	for i := range attributes {
		if strings.HasPrefix(attributes[i].Name, "xmlns") && !s.declare(&attributes[i]) {
			return false
		}
	}
	prefix, local := splitName(e.qualified)
	if prefix != "" || len(s.scopes) > 0 {
		space, ok := s.scopes.lookup(prefix)
		if !ok {
			return s.fail(start, `the prefix %s of <%s> is not declared; write xmlns:%[1]s="…"`, prefix, e.qualified)
		}
		if space == Namespace {
			space = ""
		}
		e.name, e.space = local, space
	}
	for i := range attributes {
		if a := &attributes[i]; a.Space == "" && !s.resolveAttribute(a, attributes[:i], e) {
			return false
		}
	}
	return true
}

// declare processes an attribute that may be a namespace declaration.
func (s *scanner) declare(a *Attribute) bool {
	prefix, local := splitName(a.Name)
	switch {
	case a.Name == "xmlns":
		local = ""
	case prefix != "xmlns":
		return true
	case local == "xml", local == "xmlns":
		return s.failAt(a.Pos, "the prefix %s cannot be declared", local)
	case a.Value == "":
		return s.failAt(a.Pos, "the prefix %s is declared without a namespace", local)
	}
	if a.Value == xmlNamespace || a.Value == xmlnsNamespace {
		return s.failAt(a.Pos, "the namespace %s cannot be declared", a.Value)
	}
	s.scopes = append(s.scopes, binding{prefix: local, space: a.Value, depth: s.depth + 1})
	a.Space = xmlnsNamespace
	return true
}

func (s *scanner) resolveAttribute(a *Attribute, before []Attribute, e *node) bool {
	prefix, local := splitName(a.Name)
	if prefix == "" {
		return true
	}
	space, ok := s.scopes.lookup(prefix)
	if !ok {
		return s.failAt(a.Pos, `the prefix %s of the attribute %s is not declared; write xmlns:%[1]s="…"`, prefix, a.Name)
	}
	if space == Namespace {
		return s.failAt(a.Pos, "the attribute %s has a prefix; the attributes of MIR have none, write %s", a.Name, local)
	}
	for _, other := range before {
		if other.Space == space && other.Name == local {
			return s.failAt(a.Pos, "the attribute %s of the namespace %s appears twice in <%s>", local, Quote(space), e.qualified)
		}
	}
	a.Name, a.Space = local, space
	return true
}

func (s *scanner) failAt(pos Position, format string, args ...any) bool {
	s.fault = refuse(Malformed, pos, format, args...)
	return false
}

func splitName(qualified string) (prefix, local string) {
	if colon := strings.IndexByte(qualified, ':'); colon >= 0 {
		return qualified[:colon], qualified[colon+1:]
	}
	return "", qualified
}
