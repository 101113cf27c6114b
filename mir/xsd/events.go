package xsd

import (
	"encoding/binary"
	"fmt"
	"math"

	"mirador/mir"
)

const xmlnsNamespace = "http://www.w3.org/2000/xmlns/"

// events writes a document as watch_validate wants to be told it: without
// pointers, so that it crosses into C as one piece. A scanned document has no NUL
// in it, so that NUL can end a text.
type events []byte

// eventsOf refuses what does not fit into the notation.
func eventsOf(tree *mir.Tree) (events, error) {
	const attributes = math.MaxUint8
	for i := range tree.Len() {
		if e := tree.At(i); len(e.Attributes()) > attributes {
			return nil, &mir.Error{Kind: mir.TooLarge, Faults: []mir.Fault{{
				Pos: e.Pos(), Msg: fmt.Sprintf("an element has more than %d attributes", attributes),
			}}}
		}
	}
	told := make(events, 0, 2*len(tree.Source())+64)
	told.element(tree.Root(), 0)
	return told, nil
}

// element tells an element with all inside, and answers the index behind it. How
// deep elements nest, the scan has bounded.
func (t *events) element(e mir.Element, index int) int {
	t.start(e)
	if e.HasText() {
		t.characters(e)
	}
	next := index + 1
	for child := range e.Children() {
		next = t.element(child, next)
	}
	*t = append(*t, 'E')
	*t = binary.NativeEndian.AppendUint32(*t, uint32(index))
	t.text(e.Name())
	t.text(e.Space())
	return next
}

func (t *events) start(e mir.Element) {
	*t = append(*t, 'S')
	t.text(e.Name())
	t.text(e.Space())
	counts := len(*t)
	*t = append(*t, 0, 0)
	for _, a := range e.Attributes() {
		if a.Space == xmlnsNamespace {
			(*t)[counts]++
			t.text(a.Prefix())
			t.text(a.Value)
		}
	}
	for _, a := range e.Attributes() {
		if a.Space != xmlnsNamespace {
			(*t)[counts+1]++
			t.text(a.Name)
			t.text(a.Space)
			t.text(a.Value)
		}
	}
}

// characters tells an element's text. Where elements stand beside it, that
// there is some is all that can matter: no type here has mixed content.
func (t *events) characters(e mir.Element) {
	text := e.Text()
	if text == "" {
		text = "…"
	}
	*t = append(*t, 'T')
	t.text(text)
}

func (t *events) text(text string) {
	*t = append(*t, text...)
	*t = append(*t, 0)
}
