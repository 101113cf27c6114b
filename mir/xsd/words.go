package xsd

import (
	"fmt"
	"strings"

	"mirador/mir"
)

// What libxml2 finds (xmlerror.h, xmlParserErrors).
const (
	notOfType        = 1824 // CVC_DATATYPE_VALID_1_2_1
	tooShort         = 1831 // CVC_MINLENGTH_VALID
	tooSmall         = 1833 // CVC_MININCLUSIVE_VALID
	notInSet         = 1840 // CVC_ENUMERATION_VALID
	notEmpty         = 1841 // CVC_COMPLEX_TYPE_2_1
	elementInText    = 1842 // CVC_COMPLEX_TYPE_2_2
	textInElement    = 1843 // CVC_COMPLEX_TYPE_2_3
	noSuchRoot       = 1845 // CVC_ELT_1
	noSuchAttribute  = 1866 // CVC_COMPLEX_TYPE_3_2_1
	attributeRefused = 1867 // CVC_COMPLEX_TYPE_3_2_2
	attributeMissing = 1868 // CVC_COMPLEX_TYPE_4
	misplaced        = 1871 // ELEMENT_CONTENT
)

// complaint is something libxml2 says about an element. Its message is taken
// for what the schema put into it; what the document put into it comes from the
// element.
type complaint struct {
	element mir.Element
	code    int
	message string
}

// meant is the element that a message begins with: the one being told, or, where
// that one is what is wrong with it, an element around.
func meant(told mir.Element, message string) mir.Element {
	for e, ok := told, true; ok; e, ok = e.Parent() {
		if strings.HasPrefix(message, designation(e)) {
			return e
		}
	}
	return told
}

// designation is how libxml2's messages begin that are about an element.
func designation(e mir.Element) string {
	return "Element '" + expanded(e.Space(), e.Name()) + "'"
}

// faults words the complaint for a person. It points at the attribute if it is about one,
// and at the elements inside if the element can hold none.
func (c complaint) faults() []mir.Fault {
	if a, ok := c.attribute(); ok {
		return []mir.Fault{{Pos: a.Pos, Msg: c.aboutAttribute(a)}}
	}
	if found := c.children(); len(found) > 0 {
		return found
	}
	return []mir.Fault{{Pos: c.element.Pos(), Msg: c.aboutElement()}}
}

// children are the faults of the elements inside one that can hold no elements.
func (c complaint) children() (found []mir.Fault) {
	instead := ""
	switch c.code {
	case elementInText:
		instead = "; only text can stand there"
	case notEmpty:
	default:
		return nil
	}
	for child := range c.element.Children() {
		found = append(found, mir.Fault{Pos: child.Pos(), Msg: fmt.Sprintf("<%s> has no place in <%s>%s", child.Tag(), c.element.Tag(), instead)})
	}
	return found
}

// attribute finds the attribute that the message begins with.
func (c complaint) attribute() (mir.Attribute, bool) {
	for _, a := range c.element.Attributes() {
		if strings.HasPrefix(c.message, designation(c.element)+", attribute '"+expanded(a.Space, a.Name)+"': ") {
			return a, true
		}
	}
	return mir.Attribute{}, false
}

// expanded is how libxml2 writes a name with its namespace.
func expanded(space, name string) string {
	if space == "" {
		return name
	}
	return "{" + space + "}" + name
}

func (c complaint) aboutAttribute(a mir.Attribute) string {
	switch c.code {
	case noSuchAttribute, attributeRefused:
		return fmt.Sprintf("the attribute %s does not belong to <%s>", a.Name, c.element.Tag())
	case tooShort:
		return fmt.Sprintf("%s of <%s> is empty", a.Name, c.element.Tag())
	case tooSmall:
		return fmt.Sprintf("%s is %s; it must be at least %s", a.Name, mir.Quote(a.Value), c.between("allowed ('", "')"))
	case notInSet:
		return fmt.Sprintf("%s is %s; it can be %s", a.Name, mir.Quote(a.Value), alternatives(c.between("of the set {", "}")))
	case notOfType:
		return fmt.Sprintf("%s is %s; %s was expected", a.Name, mir.Quote(a.Value), expectation(c.between("type '", "'")))
	}
	return plain(c.message)
}

func (c complaint) aboutElement() string {
	tag := c.element.Tag()
	switch c.code {
	case attributeMissing:
		return fmt.Sprintf(`<%s> has no %s; write <%[1]s %[2]s="…">`, tag, c.between("The attribute '", "'"))
	case textInElement:
		return fmt.Sprintf("text cannot stand in <%s>", tag)
	case notEmpty:
		return fmt.Sprintf("nothing can stand in <%s>", tag)
	case noSuchRoot:
		return fmt.Sprintf("a document cannot begin with <%s>", tag)
	case misplaced:
		return c.aboutContent()
	}
	return plain(c.message)
}

// aboutContent says that an element stands in the wrong place, or that one is
// missing inside.
func (c complaint) aboutContent() string {
	expected := c.expected()
	if strings.Contains(c.message, "Missing child element") {
		return fmt.Sprintf("<%s> is not complete; %s is missing inside", c.element.Tag(), expected)
	}
	text := fmt.Sprintf("<%s> has no place here", c.element.Tag())
	if parent, ok := c.element.Parent(); ok {
		text = fmt.Sprintf("<%s> has no place in <%s>", c.element.Tag(), parent.Tag())
	}
	if expected != "" {
		text += "; " + expected + " could stand here"
	}
	return text
}

// expected lists the elements libxml2 would have taken. Those of other
// namespaces, which are taken everywhere, are left out.
func (c complaint) expected() string {
	var names []string
	for name := range strings.SplitSeq(c.between("( ", " )"), ", ") {
		if name != "" && !strings.HasPrefix(name, "##") {
			names = append(names, "<"+name+">")
		}
	}
	return joined(names)
}

// between is the last part of the message that stands between two marks: a
// value of the document, which may hold the marks as well, stands before it.
func (c complaint) between(before, after string) string {
	start := strings.LastIndex(c.message, before)
	if start < 0 {
		return ""
	}
	part, _, _ := strings.Cut(c.message[start+len(before):], after)
	return part
}

// alternatives turns 'A', 'B', 'C' into a phrase.
func alternatives(set string) string {
	return joined(strings.Split(strings.ReplaceAll(set, "'", ""), ", "))
}

func joined(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// expectation names a type of the schemas for a person.
func expectation(typeName string) string {
	switch typeName {
	case "xs:boolean":
		return "true or false"
	case "count", "xs:nonNegativeInteger":
		return "a whole number that is not negative"
	case "delivery":
		return "a whole number, or -1,"
	case "xs:decimal":
		return "a decimal number"
	case "xs:anyURI":
		return "a URI"
	case "xs:hexBinary":
		return "a hexadecimal number with an even number of digits"
	}
	return "another kind of value"
}

// plain is libxml2's own wording, for what has none of ours.
func plain(message string) string {
	return strings.ToValidUTF8(strings.TrimSpace(message), "…")
}
