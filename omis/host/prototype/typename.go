package prototype

// specifiers holds the words before the stars of a type.
type specifiers struct {
	base               *Type
	unsigned, signed   bool
	short, long, plain int // plain counts "int"
	words              int
}

var qualifiers = map[string]bool{
	"const": true, "volatile": true, "restrict": true, "__restrict": true, "__restrict__": true,
	"extern": true, "static": true, "inline": true, "register": true, "__user": true, "__extension__": true,
}

// typeName parses a type up to its stars.
func (p *parser) typeName() (Type, error) {
	at := p.peek()
	var s specifiers
	for {
		more, err := p.specifier(&s)
		if err != nil {
			return Type{}, err
		}
		if !more {
			break
		}
	}
	if s.words == 0 {
		return Type{}, p.failed(at, "a type is expected, not %s", describe(at))
	}
	t := s.typ()
	for {
		switch {
		case p.accept("*"):
			t = PointerTo(t)
		case qualifiers[p.peek().text]:
			p.next()
		default:
			return t, nil
		}
	}
}

// specifier parses a word of a type, if there is one.
func (p *parser) specifier(s *specifiers) (more bool, err error) {
	t := p.peek()
	if qualifiers[t.text] {
		p.next()
		return true, nil
	}
	if p.number(s, t.text) {
		p.next()
		s.words++
		return true, nil
	}
	if s.words > 0 || !t.isName() {
		return false, nil
	}
	p.next()
	s.words++
	switch t.text {
	case "struct", "union":
		s.base = &Type{Kind: Aggregate}
	case "enum":
		four := integer(4, false)
		s.base = &four
	case "void":
		s.base = &Type{}
		return true, nil
	default:
		known, ok := p.types[t.text]
		if !ok && p.peek().text != "*" {
			return false, p.failed(t, "the type %s is not known: declare it with typedef", t.text)
		}
		if !ok {
			known = Type{Kind: Aggregate}
		}
		s.base = &known
		return true, nil
	}
	if tag := p.next(); !tag.isName() {
		return false, p.failed(tag, "the name of a %s is expected, not %s", t.text, describe(tag))
	}
	return true, nil
}

// number records a word of an arithmetic type.
func (p *parser) number(s *specifiers, word string) bool {
	if s.base != nil && s.base.Kind == Aggregate || s.words > 0 && s.base != nil && s.base.Kind == Void {
		return false
	}
	base := func(t Type) bool {
		s.base = &t
		return true
	}
	switch word {
	case "unsigned":
		s.unsigned = true
	case "signed":
		s.signed = true
	case "short":
		s.short++
	case "long":
		s.long++
	case "int":
		s.plain++
	case "char":
		return base(character)
	case "bool", "_Bool":
		return base(integer(1, false))
	case "float":
		return base(Type{Kind: Floating, Size: 4})
	case "double":
		return base(Type{Kind: Floating, Size: 8})
	default:
		return false
	}
	return true
}

func (s *specifiers) typ() Type {
	if s.base != nil {
		t := *s.base
		switch {
		case t.Char && s.unsigned:
			t.Signed = false
		case t.Kind == Floating && s.long > 0:
			t.Size = 16
		}
		return t
	}
	switch {
	case s.short > 0:
		return integer(2, !s.unsigned)
	case s.long > 0:
		return integer(8, !s.unsigned)
	}
	return integer(4, !s.unsigned)
}
