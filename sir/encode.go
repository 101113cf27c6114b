package sir

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/beevik/etree"
)

// Root returns the name of the root element of a structure document.
func (*Structure) Root() string { return "sir" }

// grammarVersion is the version of the grammar of structure documents. Documents without a version
// have functions, loops, bodies and calls of binaries only.
const grammarVersion = "2"

// Encode writes the structure as a document, in which functions are called units. It omits
// attributes without a value (an empty build id, an unknown file), and replaces characters that
// XML cannot carry by U+FFFD.
func Encode(w io.Writer, s *Structure) error {
	doc := etree.NewDocument()
	doc.WriteSettings.CanonicalAttrVal = true // keeps tabs and newlines in attributes
	doc.CreateProcInst("xml", `version="1.0" encoding="UTF-8"`)
	root := doc.CreateElement(s.Root())
	root.CreateAttr("version", grammarVersion)
	optional(root, "language", s.language())
	optional(root, "producer", s.Producer)
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
	for i := range p.Resources {
		encodeResource(e.CreateElement("resource"), &p.Resources[i])
	}
	regions, others := p.merged()
	encodeRegions(e, regions)
	encodeRegions(e, others)
}

func encodeResource(e *etree.Element, r *Resource) {
	e.CreateAttr("in", characters(r.In))
	optional(e, "out", r.Out)
	optional(e, "hash", r.Hash)
	optional(e, "language", r.Language)
	numbers(e, []attribute{{"moreGaps", r.MoreGaps}})
	for _, g := range r.Gaps {
		child := e.CreateElement("gap")
		numbers(child, []attribute{{"startLine", g.Line}, {"startColumn", g.Column}, {"endLine", g.EndLine}, {"endColumn", g.EndColumn}})
		child.CreateAttr("reason", characters(g.Reason))
	}
}

// language returns the language of all resources, "" if there are several.
func (s *Structure) language() string {
	var all []string
	for _, p := range s.Programs {
		for _, r := range p.Resources {
			all = append(all, r.Language)
		}
	}
	if slices.Sort(all); len(all) == 0 || all[0] != all[len(all)-1] {
		return ""
	}
	return all[0]
}

// attribute is an attribute with a number, which is left out if it is 0.
type attribute struct {
	name  string
	value int
}

func numbers(e *etree.Element, list []attribute) {
	for _, a := range list {
		if a.value > 0 {
			e.CreateAttr(a.name, strconv.Itoa(a.value))
		}
	}
}

// encodePosition writes where a region is in the source, if it is known.
func encodePosition(parent *etree.Element, r *Region, column, endLine, endColumn int) {
	if r.File == "" || r.Line == 0 {
		return
	}
	e := parent.CreateElement("position")
	e.CreateAttr("file", characters(r.File))
	numbers(e, []attribute{{"startLine", r.Line}, {"startColumn", column}, {"endLine", endLine}, {"endColumn", endColumn}})
}

func encodeRegions(parent *etree.Element, regions []Region) {
	for i := range regions {
		r := &regions[i]
		if r.Code != nil {
			encodeCode(parent.CreateElement("codeRegion"), r)
			continue
		}
		encodeUnit(parent.CreateElement("unit"), r)
	}
}

func encodeUnit(e *etree.Element, r *Region) {
	e.CreateAttr("id", characters(r.ID))
	e.CreateAttr("name", characters(r.Name))
	optional(e, "symbol", r.Symbol)
	e.CreateAttr("kind", characters(string(r.Kind)))
	optional(e, "form", r.Form)
	optional(e, "file", r.File)
	numbers(e, []attribute{{"line", r.Line}})
	if r.Extent == nil {
		e.CreateAttr("entry", address(r.Entry))
		e.CreateAttr("size", strconv.FormatUint(r.Size, 10))
	}
	optional(e, "unknown", r.Unknown)
	if x := r.Extent; x != nil {
		encodePosition(e, r, x.Column, x.EndLine, x.EndColumn)
	}
	encodeRegions(e, r.Regions)
}

func encodeCode(e *etree.Element, r *Region) {
	c := r.Code
	e.CreateAttr("id", characters(r.ID))
	e.CreateAttr("type", characters(string(r.Kind)))
	optional(e, "form", r.Form)
	optional(e, "callee", c.Callee)
	if c.Irreducible {
		e.CreateAttr("irreducible", "true")
	}
	if c.SharedExits {
		e.CreateAttr("sharedExits", "true")
	}
	optional(e, "uncounted", c.Uncounted)
	optional(e, "untimed", c.Untimed)
	encodePosition(e, r, c.Column, c.EndLine, c.EndColumn)
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
