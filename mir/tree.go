package mir

import (
	"iter"
	"strings"
)

// GatewayNamespace is where this gateway's additions to MIR live: what a probe
// costs and why, and explain documents.
const GatewayNamespace = "urn:mirador:gateway"

// Namespace is the namespace that requests may stand in. They mean the same there as in none,
// which MIR's report uses; answers are in none.
const Namespace = "urn:apart:mir:1"

const (
	xmlNamespace   = "http://www.w3.org/XML/1998/namespace"
	xmlnsNamespace = "http://www.w3.org/2000/xmlns/"
)

// Tree is a scanned document: its elements in the order of their start tags.
// It is immutable and keeps the document's text alive.
type Tree struct {
	source     string
	elements   []node
	attributes []Attribute
}

// node is an element of the tree. Its children are the elements after it up to
// end, so that the tree needs no pointers and a document few allocations.
type node struct {
	name, space  string
	qualified    string // as written, with its prefix
	pos          Position
	parent       int32
	end          int32 // index behind its last descendant
	first, last  int32 // its attributes: [first, last)
	body, behind int32 // offsets of its content: [body, behind)
	text         bool  // it holds character data other than white space
}

// Attribute is an attribute with its value decoded and its place.
type Attribute struct {
	Name, Space, Value string
	Pos                Position
}

// Prefix is what a namespace declaration binds: "" for the default namespace.
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

// Source is the text that was scanned.
func (t *Tree) Source() string { return t.source }

// Root is the document's root element.
func (t *Tree) Root() Element { return Element{t, 0} }

// Len is how many elements the document has.
func (t *Tree) Len() int { return len(t.elements) }

// At is the element whose start tag is the i-th, from 0.
func (t *Tree) At(i int) Element { return Element{t, i} }

func (e Element) node() *node { return &e.tree.elements[e.index] }

// Name is the element's name without a prefix.
func (e Element) Name() string { return e.node().name }

// Tag is the element's name as written, with its prefix.
func (e Element) Tag() string { return e.node().qualified }

// Space is the URI of the element's namespace, "" for MIR's own elements, also where they stand
// in Namespace.
func (e Element) Space() string { return e.node().space }

// Pos is where the element's start tag begins.
func (e Element) Pos() Position { return e.node().pos }

// Parent is the element around this one; false for the root.
func (e Element) Parent() (Element, bool) {
	parent := e.node().parent
	return Element{e.tree, int(parent)}, parent >= 0
}

// Children are the elements directly inside this one.
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

// Attributes are the element's attributes as written, namespace declarations
// included.
func (e Element) Attributes() []Attribute {
	n := e.node()
	return e.tree.attributes[n.first:n.last]
}

// Attribute finds one of MIR's own attributes.
func (e Element) Attribute(name string) (Attribute, bool) {
	for _, a := range e.Attributes() {
		if a.Space == "" && a.Name == name {
			return a, true
		}
	}
	return Attribute{}, false
}

// HasText tells whether character data other than white space stands directly
// inside the element.
func (e Element) HasText() bool { return e.node().text }

// End is the index behind the element's last descendant, in the tree's order.
func (e Element) End() int { return int(e.node().end) }

// Text is the character data of an element that has no elements inside; it is
// "" for others.
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

// decodeMixed is the text of scanned content that holds comments or CDATA.
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
