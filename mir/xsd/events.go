package xsd

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"mirador/mir"
)

const xmlnsNamespace = "http://www.w3.org/2000/xmlns/"

// events is a document in the encoding that watch_validate reads: without pointers, so that it
// crosses into C as one block. A scanned document contains no NUL, so NUL can terminate texts.
type events []byte

// eventsOf appends a document to buffer, which may be nil. It refuses documents that cannot be
// encoded.
func eventsOf(tree *mir.Tree, buffer events) (events, error) {
	const attributes = math.MaxUint8
	for i := range tree.Len() {
		if e := tree.At(i); len(e.Attributes()) > attributes {
			return nil, &mir.Error{Kind: mir.TooLarge, Faults: []mir.Fault{{
				Pos: e.Pos(), Msg: fmt.Sprintf("an element has more than %d attributes", attributes),
			}}}
		}
	}
	buffer = slices.Grow(buffer, 2*len(tree.Source())+64)
	buffer, _ = buffer.element(tree.Root(), 0)
	return buffer, nil
}

// element appends an element with its content, and returns the index after it. The scanner has
// limited the depth of the recursion.
func (t events) element(e mir.Element, index int) (buffer events, next int) {
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

// characters appends an element's text. If the element also has children, a placeholder is
// enough: no type in the schemas has mixed content, so only the presence of text matters.
func (t events) characters(e mir.Element) events {
	text := e.Text()
	if text == "" {
		text = "…"
	}
	return append(t, 'T').text(text)
}

func (t events) name(local, space string) events { return t.text(local).text(space) }

func (t events) text(text string) events { return append(append(t, text...), 0) }
