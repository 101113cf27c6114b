package xsd

import (
	"fmt"
	"strings"

	"mirador/mir"
)

// Error codes of libxml2 (xmlerror.h, xmlParserErrors).
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

// complaint is an error of libxml2 about an element. Only the parts that come from the schema
// are read from its message; the parts that come from the document are read from the element.
type complaint struct {
	element mir.Element
	code    int
	message string
}

// meant returns the element that a message names. That is the current element or, if the
// current element is not allowed there, an enclosing one.
func meant(current mir.Element, message string) mir.Element {
	for e, ok := current, true; ok; e, ok = e.Parent() {
		if strings.HasPrefix(message, designation(e)) {
			return e
		}
	}
	return current
}

// designation returns the beginning of libxml2's messages about an element.
func designation(e mir.Element) string {
	return "Element '" + expanded(e.Space(), e.Name()) + "'"
}

// faults words the complaint for a person. The position is the position of the attribute if
// the complaint concerns one, or of the children if the element must not have any.
func (c complaint) faults() []mir.Fault {
	if a, ok := c.attribute(); ok {
		return []mir.Fault{{Pos: a.Pos, Msg: c.aboutAttribute(a)}}
	}
	if found := c.children(); len(found) > 0 {
		return found
	}
	return []mir.Fault{{Pos: c.element.Pos(), Msg: c.aboutElement()}}
}

// children returns a fault for each child of an element that must not have children.
func (c complaint) children() (found []mir.Fault) {
	instead := ""
	switch c.code {
	case elementInText:
		instead = "; only text is allowed there"
	case notEmpty:
	default:
		return nil
	}
	for child := range c.element.Children() {
		found = append(found, mir.Fault{Pos: child.Pos(), Msg: fmt.Sprintf("<%s> is not allowed in <%s>%s", child.Tag(), c.element.Tag(), instead)})
	}
	return found
}

// attribute returns the attribute that the message names.
func (c complaint) attribute() (mir.Attribute, bool) {
	for _, a := range c.element.Attributes() {
		if strings.HasPrefix(c.message, designation(c.element)+", attribute '"+expanded(a.Space, a.Name)+"': ") {
			return a, true
		}
	}
	return mir.Attribute{}, false
}

// expanded formats a name with its namespace as libxml2 does.
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
		return fmt.Sprintf("text is not allowed in <%s>", tag)
	case notEmpty:
		return fmt.Sprintf("<%s> must be empty", tag)
	case noSuchRoot:
		return fmt.Sprintf("a document cannot begin with <%s>", tag)
	case misplaced:
		return c.aboutContent()
	}
	return plain(c.message)
}

// aboutContent reports that an element is not allowed, or that a child is missing.
func (c complaint) aboutContent() string {
	expected := c.expected()
	if strings.Contains(c.message, "Missing child element") {
		return fmt.Sprintf("<%s> is not complete; %s is missing inside", c.element.Tag(), expected)
	}
	text := fmt.Sprintf("<%s> is not allowed here", c.element.Tag())
	if parent, ok := c.element.Parent(); ok {
		text = fmt.Sprintf("<%s> is not allowed in <%s>", c.element.Tag(), parent.Tag())
	}
	if expected != "" {
		text += "; " + expected + " is allowed here"
	}
	return text
}

// expected lists the elements that libxml2 would accept. It omits elements of other
// namespaces, which are accepted everywhere.
func (c complaint) expected() string {
	var names []string
	for name := range strings.SplitSeq(c.between("( ", " )"), ", ") {
		if name != "" && !strings.HasPrefix(name, "##") {
			names = append(names, "<"+name+">")
		}
	}
	return joined(names)
}

// between returns the last part of the message that is enclosed by two marks. An earlier match
// may come from a value of the document.
func (c complaint) between(before, after string) string {
	start := strings.LastIndex(c.message, before)
	if start < 0 {
		return ""
	}
	part, _, _ := strings.Cut(c.message[start+len(before):], after)
	return part
}

// alternatives formats the set 'A', 'B', 'C' for a message.
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

// expectation describes a type of the schemas.
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

// plain returns libxml2's own message, for errors without a better one.
func plain(message string) string {
	return strings.ToValidUTF8(strings.TrimSpace(message), "…")
}
