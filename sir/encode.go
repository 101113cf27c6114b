package sir

import (
	"bufio"
	"encoding/xml"
	"io"
	"strconv"
)

// Encode writes a structure document, one unit on a line, as schemas/sir.xsd
// says. It streams: a large program has a hundred thousand units.
func Encode(w io.Writer, s *Structure) error {
	out := encoder{bufio.NewWriter(w)}
	out.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<sir>\n")
	for i := range s.Programs {
		out.program(&s.Programs[i])
	}
	out.WriteString("</sir>\n")
	return out.Flush() // a bufio.Writer keeps its first error
}

type encoder struct{ *bufio.Writer }

func (e encoder) program(p *Program) {
	e.WriteString("  <program")
	e.attribute("path", p.Path)
	e.optional("buildId", p.BuildID)
	e.WriteString(">\n")
	for i := range p.Units {
		e.unit(&p.Units[i])
	}
	e.WriteString("  </program>\n")
}

func (e encoder) unit(u *Unit) {
	e.WriteString("    <unit")
	e.attribute("id", u.ID)
	e.attribute("name", u.Name)
	if u.Symbol != u.Name {
		e.optional("symbol", u.Symbol)
	}
	e.attribute("kind", u.Kind)
	e.optional("file", u.File)
	if u.Line > 0 {
		e.attribute("line", strconv.Itoa(u.Line))
	}
	e.attribute("entry", "0x"+strconv.FormatUint(u.Entry, 16))
	if u.Size > 0 {
		e.attribute("size", strconv.FormatUint(u.Size, 10))
	}
	e.WriteString("/>\n")
}

func (e encoder) optional(name, value string) {
	if value != "" {
		e.attribute(name, value)
	}
}

// attribute escapes what XML wants escaped, and replaces bytes that it does not
// allow: a symbol may be made of any.
func (e encoder) attribute(name, value string) {
	e.WriteByte(' ')
	e.WriteString(name)
	e.WriteString(`="`)
	xml.EscapeText(e.Writer, []byte(value))
	e.WriteByte('"')
}
