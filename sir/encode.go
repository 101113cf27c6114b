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

// Encode writes the structure as a document, in which regions are called units. It omits
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
		e, r := parent.CreateElement("unit"), &regions[i]
		e.CreateAttr("id", characters(r.ID))
		e.CreateAttr("name", characters(r.Name))
		optional(e, "symbol", r.Symbol)
		e.CreateAttr("kind", characters(string(r.Kind)))
		optional(e, "file", r.File)
		if r.Line > 0 {
			e.CreateAttr("line", strconv.Itoa(r.Line))
		}
		e.CreateAttr("entry", fmt.Sprintf("%#x", r.Entry))
		e.CreateAttr("size", strconv.FormatUint(r.Size, 10))
		encodeRegions(e, r.Regions)
	}
}

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
