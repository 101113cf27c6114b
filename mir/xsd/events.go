package xsd

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"mirador/mir"
)

const xmlnsNamespace = "http://www.w3.org/2000/xmlns/"

// events writes a document as watch_validate wants to be told it: without
// pointers, so that it crosses into C as one piece. A scanned document has no NUL
// in it, so that NUL can end a text.
type events []byte

// eventsOf writes behind told, which may be nil, and refuses what does not fit
// into the notation.
func eventsOf(tree *mir.Tree, told events) (events, error) {
	const attributes = math.MaxUint8
	for i := range tree.Len() {
		if e := tree.At(i); len(e.Attributes()) > attributes {
			return nil, &mir.Error{Kind: mir.TooLarge, Faults: []mir.Fault{{
				Pos: e.Pos(), Msg: fmt.Sprintf("an element has more than %d attributes", attributes),
			}}}
		}
	}
	told = slices.Grow(told, 2*len(tree.Source())+64)
	told, _ = told.element(tree.Root(), 0)
	return told, nil
}

// element tells an element with all inside, and answers the index behind it. How
// deep elements nest, the scan has bounded.
func (t events) element(e mir.Element, index int) (told events, next int) {
	t = t.start(e)
	if e.HasText() {
		t = t.characters(e)
	}
	next = index + 1
	for child := range e.Children() {
		t, next = t.element(child, next)
	}
	t = append(t, 'E')
	t = binary.NativeEndian.AppendUint32(t, uint32(index))
	return t.name(e.Name(), e.Space()), next
}

func (t events) start(e mir.Element) events {
	t = append(t, 'S')
	t = t.name(e.Name(), e.Space())
	attributes := e.Attributes()
	namespaces := 0
	counts := len(t)
	t = append(t, 0, 0)
	for i := range attributes {
		if a := &attributes[i]; a.Space == xmlnsNamespace {
			t = t.name(a.Prefix(), a.Value)
			namespaces++
		}
	}
	t[counts], t[counts+1] = byte(namespaces), byte(len(attributes)-namespaces)
	for i := range attributes {
		if a := &attributes[i]; a.Space != xmlnsNamespace {
			t = t.name(a.Name, a.Space)
			t = t.text(a.Value)
		}
	}
	return t
}

// characters tells an element's text. Where elements stand beside it, that
// there is some is all that can matter: no type here has mixed content.
func (t events) characters(e mir.Element) events {
	text := e.Text()
	if text == "" {
		text = "…"
	}
	return append(t, 'T').text(text)
}

func (t events) name(local, space string) events { return t.text(local).text(space) }

func (t events) text(text string) events { return append(append(t, text...), 0) }
