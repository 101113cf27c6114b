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

// Encode writes the structure as a document. It omits attributes without a value (an empty
// build id, an unknown file) and the exits, which are not part of the document. It replaces
// characters that XML cannot carry by U+FFFD.
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
	for i := range p.Units {
		encodeUnit(e.CreateElement("unit"), &p.Units[i])
	}
}

func encodeUnit(e *etree.Element, u *Unit) {
	e.CreateAttr("id", characters(u.ID))
	e.CreateAttr("name", characters(u.Name))
	optional(e, "symbol", u.Symbol)
	e.CreateAttr("kind", characters(u.Kind))
	optional(e, "file", u.File)
	if u.Line > 0 {
		e.CreateAttr("line", strconv.Itoa(u.Line))
	}
	e.CreateAttr("entry", fmt.Sprintf("%#x", u.Entry))
	e.CreateAttr("size", strconv.FormatUint(u.Size, 10))
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
