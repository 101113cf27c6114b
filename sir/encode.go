package sir

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"
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
	e := encoder{w: bufio.NewWriterSize(w, 64<<10)}
	e.w.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	e.begin(s.Root())
	e.text("version", grammarVersion)
	e.optional("language", s.language())
	e.optional("producer", cmp.Or(s.Producer, producer()))
	for i := range s.Programs {
		if err := e.program(&s.Programs[i]); err != nil {
			return err
		}
	}
	e.end(s.Root())
	if err := e.w.Flush(); err != nil {
		return fmt.Errorf("cannot write the structure document: %w", err)
	}
	return nil
}

// producer names this program and its version, as the producer of a structure.
var producer = sync.OnceValue(func() string {
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" {
		return "mirador " + build.Main.Version
	}
	return "mirador"
})

// encoder writes elements. The structure of a large program is a document of 100 MB, of which no tree is made. Errors
// are those of w.
type encoder struct {
	w     *bufio.Writer
	depth int
	open  bool // the tag of the last element is not closed
}

const indentation = "                                                                "

func (e *encoder) indent() {
	for n := 2 * e.depth; n > 0; n -= len(indentation) {
		e.w.WriteString(indentation[:min(n, len(indentation))])
	}
}

// begin begins an element inside the last one that has not ended.
func (e *encoder) begin(name string) {
	e.close()
	e.indent()
	e.w.WriteByte('<')
	e.w.WriteString(name)
	e.open = true
	e.depth++
}

func (e *encoder) close() {
	if e.open {
		e.w.WriteString(">\n")
		e.open = false
	}
}

func (e *encoder) end(name string) {
	e.depth--
	if e.open {
		e.w.WriteString("/>\n")
		e.open = false
		return
	}
	e.indent()
	e.w.WriteString("</")
	e.w.WriteString(name)
	e.w.WriteString(">\n")
}

// text writes an attribute.
func (e *encoder) text(name, value string) {
	e.attribute(name)
	for value != "" {
		n := 0
		for n < len(value) && plain(value[n]) {
			n++
		}
		e.w.WriteString(value[:n])
		if value = value[n:]; value != "" {
			r, size := utf8.DecodeRuneInString(value)
			e.character(r)
			value = value[size:]
		}
	}
	e.w.WriteByte('"')
}

func (e *encoder) attribute(name string) {
	e.w.WriteByte(' ')
	e.w.WriteString(name)
	e.w.WriteString(`="`)
}

// plain reports whether a byte stands for itself in an attribute.
func plain(b byte) bool { return b >= 0x20 && b < 0x7f && b != '&' && b != '<' && b != '"' }

// character writes a character of an attribute. XML 1.0 does not allow all.
func (e *encoder) character(r rune) {
	switch {
	case r == '&':
		e.w.WriteString("&amp;")
	case r == '<':
		e.w.WriteString("&lt;")
	case r == '"':
		e.w.WriteString("&quot;")
	case r == '\t', r == '\n', r == '\r': // a reader would replace them by spaces
		fmt.Fprintf(e.w, "&#x%X;", r)
	case r >= 0x20 && r <= 0xd7ff, r >= 0xe000 && r <= 0xfffd, r >= 0x10000:
		e.w.WriteRune(r)
	default:
		e.w.WriteRune('\uFFFD')
	}
}

func (e *encoder) optional(name, value string) {
	if value != "" {
		e.text(name, value)
	}
}

func (e *encoder) address(name string, a uint64) {
	e.attribute(name)
	e.w.WriteString("0x")
	e.w.Write(strconv.AppendUint(e.w.AvailableBuffer(), a, 16))
	e.w.WriteByte('"')
}

func (e *encoder) number(name string, n uint64) {
	e.attribute(name)
	e.w.Write(strconv.AppendUint(e.w.AvailableBuffer(), n, 10))
	e.w.WriteByte('"')
}

// positive writes a number that is left out if it is not positive.
func (e *encoder) positive(name string, n int) {
	if n > 0 {
		e.number(name, uint64(n))
	}
}

func (e *encoder) flag(name string, set bool) {
	if set {
		e.text(name, "true")
	}
}

func (e *encoder) program(p *Program) (err error) {
	e.begin("program")
	e.text("path", p.Path)
	e.optional("buildId", p.BuildID)
	for i := range p.Resources {
		e.resource(&p.Resources[i])
	}
	regions, others := p.merged()
	if p.Inside != nil {
		err = e.later(regions, p.Inside)
	} else {
		e.regions(regions)
	}
	e.regions(others)
	e.end("program")
	return err
}

func (e *encoder) resource(r *Resource) {
	e.begin("resource")
	e.text("in", r.In)
	e.optional("out", r.Out)
	e.optional("hash", r.Hash)
	e.optional("language", r.Language)
	e.positive("moreGaps", r.MoreGaps)
	for _, g := range r.Gaps {
		e.begin("gap")
		e.span(g.Line, g.Column, g.EndLine, g.EndColumn)
		e.text("reason", g.Reason)
		e.end("gap")
	}
	e.end("resource")
}

func (e *encoder) span(line, column, endLine, endColumn int) {
	e.positive("startLine", line)
	e.positive("startColumn", column)
	e.positive("endLine", endLine)
	e.positive("endColumn", endColumn)
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

// position writes where a region is in the source, if it is known.
func (e *encoder) position(r *Region, column, endLine, endColumn int) {
	if r.File == "" || r.Line == 0 {
		return
	}
	e.begin("position")
	e.text("file", r.File)
	e.span(r.Line, column, endLine, endColumn)
	e.end("position")
}

func (e *encoder) regions(regions []Region) {
	for i := range regions {
		if r := &regions[i]; r.Code != nil {
			e.code(r)
		} else {
			e.unit(r)
		}
	}
}

func (e *encoder) unit(r *Region) {
	e.begin("unit")
	e.text("id", r.ID)
	e.text("name", r.Name)
	e.optional("symbol", r.Symbol)
	e.text("kind", string(r.Kind))
	e.optional("form", r.Form)
	e.optional("file", r.File)
	e.positive("line", r.Line)
	if r.Extent == nil {
		e.address("entry", r.Entry)
		e.number("size", r.Size)
	}
	e.optional("unknown", r.Unknown)
	if p := r.Placements; p != nil {
		e.optional("uncounted", p.Uncounted)
		e.optional("untimed", p.Untimed)
		e.placements(p, p.Uncounted, p.Untimed)
		e.refusals(p)
	}
	if x := r.Extent; x != nil {
		e.position(r, x.Column, x.EndLine, x.EndColumn)
	}
	e.regions(r.Regions)
	e.end("unit")
}

func (e *encoder) code(r *Region) {
	c := r.Code
	e.begin("codeRegion")
	e.text("id", r.ID)
	e.text("type", string(r.Kind))
	e.optional("form", r.Form)
	e.optional("callee", c.Callee)
	e.flag("irreducible", c.Irreducible)
	e.flag("falls", c.Falls)
	e.flag("empty", c.Empty)
	e.flag("sharedExits", c.SharedExits)
	e.optional("uncounted", c.Uncounted)
	e.optional("untimed", c.Untimed)
	e.placements(r.Placements, c.Uncounted, c.Untimed)
	e.position(r, c.Column, c.EndLine, c.EndColumn)
	for _, piece := range c.Ranges {
		e.begin("range")
		e.address("low", piece.Low)
		e.address("high", piece.High)
		e.end("range")
	}
	e.edges("entry", c.Enter, c.Entries, c.When)
	e.edges("exit", c.Leave, c.Exits, nil)
	e.refusals(r.Placements)
	e.regions(r.Regions)
	e.end("codeRegion")
}

// edges writes the ways into a region, or out of it, and the places that a probe uses.
func (e *encoder) edges(name string, edges []Edge, places []uint64, when map[uint64]Condition) {
	for _, edge := range edges {
		e.begin(name)
		if edge.From != 0 {
			e.address("from", edge.From)
		}
		e.address("to", edge.To)
		e.end(name)
	}
	for _, at := range places {
		e.begin("place")
		e.address("address", at)
		e.text("of", name)
		if c := when[at]; c > 0 {
			e.number("condition", uint64(c)-1)
		}
		e.end("place")
	}
}
