package mir

import (
	"iter"
	"strings"
)

// GatewayNamespace is the namespace of this gateway's additions to MIR: costs and placements
// of probes, and explain documents.
const GatewayNamespace = "urn:mirador:gateway"

// Namespace is the namespace that requests may use. MIR's report uses no namespace; both mean
// the same. Answers use none.
const Namespace = "urn:apart:mir:1"

const (
	xmlNamespace   = "http://www.w3.org/XML/1998/namespace"
	xmlnsNamespace = "http://www.w3.org/2000/xmlns/"
)

// Tree is a scanned document: its elements in the order of their start tags. It is immutable
// and keeps the document's text alive.
type Tree struct {
	source     string
	elements   []node
	attributes []Attribute
}

// node is an element of the tree. Its descendants are the nodes after it up to end. So the
// tree needs no pointers, and a document few allocations.
type node struct {
	name, space  string
	qualified    string // as written, with its prefix
	pos          Position
	parent       int32
	end          int32 // index after its last descendant
	first, last  int32 // its attributes: [first, last)
	body, behind int32 // offsets of its content: [body, behind)
	text         bool  // it holds character data other than white space
}

// Attribute is an attribute with its decoded value and its position.
type Attribute struct {
	Name, Space, Value string
	Pos                Position
}

// Prefix returns the prefix that a namespace declaration binds: "" for the default namespace.
func (a Attribute) Prefix() string {
	if a.Name == "xmlns" {
		return ""
	}
	return a.Name[len("xmlns:"):]
}

// Element is an element of a Tree.
type Element struct {
	tree  *Tree
	index int
}

// Source returns the scanned text.
func (t *Tree) Source() string { return t.source }

// Root returns the document's root element.
func (t *Tree) Root() Element { return Element{t, 0} }

// Len returns the number of elements in the document.
func (t *Tree) Len() int { return len(t.elements) }

// At returns the element with the i-th start tag, from 0.
func (t *Tree) At(i int) Element { return Element{t, i} }

func (e Element) node() *node { return &e.tree.elements[e.index] }

// Name returns the element's name without its prefix.
func (e Element) Name() string { return e.node().name }

// Tag returns the element's name as written, with its prefix.
func (e Element) Tag() string { return e.node().qualified }

// Space returns the URI of the element's namespace. It is "" for MIR's elements, whether they
// use Namespace or none.
func (e Element) Space() string { return e.node().space }

// Pos returns the position of the element's start tag.
func (e Element) Pos() Position { return e.node().pos }

// Parent returns the enclosing element, and false for the root.
func (e Element) Parent() (Element, bool) {
	parent := e.node().parent
	return Element{e.tree, int(parent)}, parent >= 0
}

// Children iterates over the direct children.
func (e Element) Children() iter.Seq[Element] {
	return func(yield func(Element) bool) {
		end := int(e.node().end)
		for i := e.index + 1; i < end; i = int(e.tree.elements[i].end) {
			if !yield(Element{e.tree, i}) {
				return
			}
		}
	}
}

// Attributes returns the element's attributes in document order, including namespace
// declarations.
func (e Element) Attributes() []Attribute {
	n := e.node()
	return e.tree.attributes[n.first:n.last]
}

// Attribute returns an attribute of MIR.
func (e Element) Attribute(name string) (Attribute, bool) {
	for _, a := range e.Attributes() {
		if a.Space == "" && a.Name == name {
			return a, true
		}
	}
	return Attribute{}, false
}

// HasText reports whether the element directly contains character data other than white space.
func (e Element) HasText() bool { return e.node().text }

// End returns the index after the element's last descendant, in the tree's order.
func (e Element) End() int { return int(e.node().end) }

// Text returns the character data of an element without children, "" for other elements.
func (e Element) Text() string {
	n := e.node()
	if int(n.end) != e.index+1 {
		return ""
	}
	raw := e.tree.source[n.body:n.behind]
	if strings.IndexByte(raw, '<') < 0 {
		return decodeText(raw)
	}
	return decodeMixed(raw)
}

// decodeMixed returns the text of scanned content that contains comments or CDATA sections.
func decodeMixed(raw string) string {
	var text strings.Builder
	for raw != "" {
		switch {
		case strings.HasPrefix(raw, commentOpen):
			_, raw, _ = strings.Cut(raw[len(commentOpen):], commentClose)
		case strings.HasPrefix(raw, cdataOpen):
			var literal string
			literal, raw, _ = strings.Cut(raw[len(cdataOpen):], cdataClose)
			text.WriteString(normalizeLines(literal))
		default:
			stop := strings.IndexByte(raw, '<')
			if stop < 0 {
				stop = len(raw)
			}
			text.WriteString(decodeText(raw[:stop]))
			raw = raw[stop:]
		}
	}
	return text.String()
}
