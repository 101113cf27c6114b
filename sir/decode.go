package sir

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/beevik/etree"
)

// DecodeError describes an error in a structure document.
type DecodeError struct {
	Element string // "program", "unit"; "" for the document
	Number  int    // index among the elements of that name in the document, from 1
	Why     string
}

func (e *DecodeError) Error() string {
	if e.Element == "" {
		return "not a structure document: " + e.Why
	}
	return fmt.Sprintf("structure document, %s %d: %s", e.Element, e.Number, e.Why)
}

// Decode reads a structure document. It ignores unknown elements and attributes, so that
// documents can be extended. The caller limits r.
func Decode(r io.Reader) (*Structure, error) {
	doc := etree.NewDocument()
	doc.ReadSettings.ValidateInput = true
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("cannot read the structure document: %w", err)
	}
	// The validation does not accept a newline after the root element.
	if err := doc.ReadFromBytes(bytes.TrimSpace(text)); err != nil {
		return nil, &DecodeError{Why: err.Error()}
	}
	root := doc.Root()
	if root == nil || root.Tag != "sir" {
		return nil, &DecodeError{Why: "its root element is not sir"}
	}
	d := decoder{}
	s := &Structure{}
	for _, e := range root.SelectElements("program") {
		p, err := d.program(e)
		if err != nil {
			return nil, err
		}
		s.Programs = append(s.Programs, p)
	}
	return s, nil
}

// decoder counts elements for error messages.
type decoder struct{ programs, units int }

func (d *decoder) program(e *etree.Element) (Program, error) {
	d.programs++
	p := Program{Path: e.SelectAttrValue("path", ""), BuildID: e.SelectAttrValue("buildId", "")}
	if p.Path == "" {
		return p, &DecodeError{"program", d.programs, "it has no path"}
	}
	for _, child := range e.SelectElements("unit") {
		u, err := d.unit(child)
		if err != nil {
			return p, err
		}
		p.Units = append(p.Units, u)
	}
	return p, nil
}

func (d *decoder) unit(e *etree.Element) (u Unit, err error) {
	d.units++
	u = Unit{
		ID: e.SelectAttrValue("id", ""), Name: e.SelectAttrValue("name", ""), Symbol: e.SelectAttrValue("symbol", ""),
		Kind: e.SelectAttrValue("kind", ""), File: e.SelectAttrValue("file", ""),
	}
	if u.ID == "" {
		return u, &DecodeError{"unit", d.units, "it has no id"}
	}
	line, err := d.number(e, "line", 10, 31)
	if err != nil {
		return u, err
	}
	u.Line = int(line)
	if u.Entry, err = d.number(e, "entry", 16, 64); err != nil {
		return u, err
	}
	u.Size, err = d.number(e, "size", 10, 64)
	return u, err
}

// number reads an optional attribute. Base 16 requires the prefix 0x.
func (d *decoder) number(e *etree.Element, attribute string, base, bits int) (uint64, error) {
	text := e.SelectAttrValue(attribute, "")
	if text == "" {
		return 0, nil
	}
	digits, prefixed := strings.CutPrefix(text, "0x")
	n, err := strconv.ParseUint(digits, base, bits)
	if err != nil || prefixed != (base == 16) {
		return 0, &DecodeError{"unit", d.units, fmt.Sprintf("%s=%q is not a number in the required format", attribute, text)}
	}
	return n, nil
}
