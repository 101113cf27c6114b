package sir

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/beevik/etree"
)

// Root returns the name of the root element of a structure document.
func (*Structure) Root() string { return "sir" }

// Encode writes the structure as a document, in which functions are called units. It omits
// attributes without a value (an empty build id, an unknown file), and replaces characters that
// XML cannot carry by U+FFFD.
func Encode(w io.Writer, s *Structure) error {
	doc := etree.NewDocument()
	doc.WriteSettings.CanonicalAttrVal = true // keeps tabs and newlines in attributes
	doc.CreateProcInst("xml", `version="1.0" encoding="UTF-8"`)
	root := doc.CreateElement(s.Root())
	for i := range s.Programs {
		encodeProgram(root.CreateElement("program"), &s.Programs[i])
	}
	doc.Indent(2)
	if _, err := doc.WriteTo(w); err != nil {
		return fmt.Errorf("cannot write the structure document: %w", err)
	}
	return nil
}

func encodeProgram(e *etree.Element, p *Program) {
	e.CreateAttr("path", characters(p.Path))
	optional(e, "buildId", p.BuildID)
	encodeRegions(e, p.Regions)
}

func encodeRegions(parent *etree.Element, regions []Region) {
	for i := range regions {
		r := &regions[i]
		if r.Code != nil {
			encodeCode(parent.CreateElement("codeRegion"), r)
			continue
		}
		e := parent.CreateElement("unit")
		e.CreateAttr("id", characters(r.ID))
		e.CreateAttr("name", characters(r.Name))
		optional(e, "symbol", r.Symbol)
		e.CreateAttr("kind", characters(string(r.Kind)))
		optional(e, "file", r.File)
		if r.Line > 0 {
			e.CreateAttr("line", strconv.Itoa(r.Line))
		}
		e.CreateAttr("entry", address(r.Entry))
		e.CreateAttr("size", strconv.FormatUint(r.Size, 10))
		optional(e, "unknown", r.Unknown)
		encodeRegions(e, r.Regions)
	}
}

func encodeCode(e *etree.Element, r *Region) {
	c := r.Code
	e.CreateAttr("id", characters(r.ID))
	e.CreateAttr("type", characters(string(r.Kind)))
	optional(e, "callee", c.Callee)
	if c.Irreducible {
		e.CreateAttr("irreducible", "true")
	}
	if c.SharedExits {
		e.CreateAttr("sharedExits", "true")
	}
	optional(e, "uncounted", c.Uncounted)
	optional(e, "untimed", c.Untimed)
	if r.File != "" && r.Line > 0 {
		p := e.CreateElement("position")
		p.CreateAttr("file", characters(r.File))
		for _, n := range []struct {
			name  string
			value int
		}{{"startLine", r.Line}, {"startColumn", c.Column}, {"endLine", c.EndLine}} {
			if n.value > 0 {
				p.CreateAttr(n.name, strconv.Itoa(n.value))
			}
		}
	}
	for _, piece := range c.Ranges {
		p := e.CreateElement("range")
		p.CreateAttr("low", address(piece.Low))
		p.CreateAttr("high", address(piece.High))
	}
	encodeEdges(e, "entry", c.Enter, c.Entries)
	encodeEdges(e, "exit", c.Leave, c.Exits)
	encodeRegions(e, r.Regions)
}

// encodeEdges writes the ways into a region, or out of it, and the places that a probe uses.
func encodeEdges(e *etree.Element, name string, edges []Edge, places []uint64) {
	for _, edge := range edges {
		child := e.CreateElement(name)
		if edge.From != 0 {
			child.CreateAttr("from", address(edge.From))
		}
		child.CreateAttr("to", address(edge.To))
	}
	for _, at := range places {
		child := e.CreateElement("place")
		child.CreateAttr("address", address(at))
		child.CreateAttr("of", name)
	}
}

func address(a uint64) string { return fmt.Sprintf("%#x", a) }

func optional(e *etree.Element, attribute, value string) {
	if value != "" {
		e.CreateAttr(attribute, characters(value))
	}
}

// characters replaces characters that XML 1.0 does not allow.
func characters(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r', r >= 0x20 && r <= 0xd7ff, r >= 0xe000 && r <= 0xfffd, r >= 0x10000:
			return r
		}
		return '\uFFFD'
	}, s)
}
