// Package weave writes regions into source files: where a region begins and ends, the woven program has an
// instruction nop with a note that names the region. Package sir/binary finds the notes. A region ends whatever
// way control takes out of it: by its end, return, break, goto or an exception.
//
// The package imports sir, and the scanner of Fortran. It starts no goroutines and touches no files. Texts and ids may come from
// strangers: what is written into a source has no characters but those of names.
package weave

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"

	"mirador/sir"
)

// Source is a source file.
type Source struct {
	Path     string // in the positions of regions
	Language string
	Text     []byte
	// Fixed sources are not woven. What they define is known.
	Fixed bool
}

// Weaving has the sources of a program, as they are without woven regions. It may be used from any goroutine.
type Weaving struct {
	id       string
	sources  []Source
	regions  map[string]*located
	bySource [][]*located
	macros   map[string]bool // with parameters
	jumping  map[string]bool // macros of Fortran that contain a jump
	recent   recent
}

// language is what weaving knows of a language.
type language struct {
	read func(*Weaving, *Source) text
	sign string // what woven sources contain, and others do not
	// beside returns files that a program with woven regions needs, if there are any. The regions are by source.
	beside func(w *Weaving, regions [][]*located) []File
}

// languages are those whose sources can be woven.
var languages = map[string]language{
	"c":   {read: newCSource, sign: "MIRADOR_WEAVING("},
	"c++": {read: newCSource, sign: "MIRADOR_WEAVING("},
	"go":  {read: newGoSource, sign: "mirador_open"},

	"java":    {read: newJavaSource, sign: "Mirador.on)", beside: librariesOfJava},
	"fortran": {read: newFortranSource, sign: "call miradorb", beside: markersOfFortran},
}

// text is a source as its language reads it.
type text interface {
	// woven returns the source with some regions, in the order of their ids. The error has a *Refusal for each
	// region that cannot be woven.
	woven(weaving string, source int, regions []*located) ([]byte, error)
}

// recent is the source that was looked at last, because requests come one by one.
type recent struct {
	sync.Mutex
	at  int
	has text
}

// File is a file to write.
type File struct {
	Source int    // number of the source that it is, or that it is beside
	Suffix string // "" for the source; otherwise the file has this in place of the extension of the source
	Text   []byte
}

// located is a region with those around it.
type located struct {
	*sir.Region
	around *located // nil for an outermost unit
	source int
	depth  int
}

// Refusal is the reason why a region cannot be woven.
type Refusal struct{ ID, Why string }

func (e *Refusal) Error() string { return fmt.Sprintf("%s cannot be woven: %s", e.ID, e.Why) }

// New returns the weaving of a program. The id, of 16 hexadecimal digits or more, is written into the sources, so that
// the program that is built from them tells which weaving it is of.
func New(id string, p *sir.Program, sources []Source) (*Weaving, error) {
	w := &Weaving{id: id, sources: sources, regions: map[string]*located{}, macros: map[string]bool{}, jumping: map[string]bool{}, bySource: make([][]*located, len(sources))}
	for _, s := range sources {
		for _, found := range macro.FindAllSubmatch(s.Text, -1) {
			w.macros[string(found[1])] = true
		}
		for _, found := range jumping.FindAllSubmatch(s.Text, -1) {
			w.jumping[string(found[1])] = true
		}
		l, known := languages[s.Language]
		if known && bytes.Contains(s.Text, []byte(l.sign)) {
			return nil, fmt.Errorf("%s has woven regions already: name the source that it was made from", s.Path)
		}
		if !known && !s.Fixed {
			return nil, fmt.Errorf("%s: sources in %s cannot be woven; leave out the attribute out, and measure the regions in the running program", s.Path, s.Language)
		}
	}
	w.add(p.Regions, nil)
	return w, nil
}

var macro = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)\(`)

func (w *Weaving) add(regions []sir.Region, around *located) {
	for i := range regions {
		r := &regions[i]
		l := &located{Region: r, around: around}
		if around != nil {
			l.depth = around.depth + 1
		}
		l.source = slices.IndexFunc(w.sources, func(s Source) bool { return s.Path == r.File && !s.Fixed })
		if l.source >= 0 {
			w.regions[r.ID] = l
			w.bySource[l.source] = append(w.bySource[l.source], l)
		}
		w.add(r.Regions, l)
	}
}

// Memory returns how many bytes the weaving may take: a source takes up to 10 times its size while it is woven.
func (w *Weaving) Memory() (n int64) {
	for _, s := range w.sources {
		n += 10 * int64(len(s.Text))
	}
	return n + 600*int64(len(w.regions))
}

// Has reports whether the program has a region with an id.
func (w *Weaving) Has(id string) bool { return w.regions[id] != nil }

// Check returns a *Refusal if a region cannot be woven.
func (w *Weaving) Check(id string) error {
	l := w.regions[id]
	if l == nil {
		return &Refusal{id, "the sources have no such region"}
	}
	_, err := w.weave(l.source, []*located{l})
	return err
}

// Weave returns the texts of all sources with some regions woven in, in their order, and behind them files that are
// beside sources. The error has a *Refusal for each region that cannot be woven.
func (w *Weaving) Weave(ids []string) (files []File, err error) {
	bySource := make([][]*located, len(w.sources))
	var wrong []error
	for _, id := range ids {
		if l := w.regions[id]; l == nil {
			wrong = append(wrong, &Refusal{id, "the sources have no such region"})
		} else if !slices.Contains(bySource[l.source], l) {
			bySource[l.source] = append(bySource[l.source], l)
		}
	}
	for i, s := range w.sources {
		text, err := w.weave(i, bySource[i])
		wrong = append(wrong, err)
		if len(bySource[i]) == 0 {
			text = s.Text
		}
		files = append(files, File{Source: i, Text: text})
	}
	for _, name := range slices.Sorted(maps.Keys(languages)) {
		if l := languages[name]; l.beside != nil {
			files = append(files, l.beside(w, bySource)...)
		}
	}
	return files, errors.Join(wrong...)
}

// weave returns the text of a source with regions woven in.
func (w *Weaving) weave(source int, regions []*located) ([]byte, error) {
	if len(regions) == 0 {
		return nil, nil
	}
	slices.SortFunc(regions, func(a, b *located) int { return cmp.Compare(a.ID, b.ID) })
	return w.read(source).woven(w.id, source, regions)
}

// read returns a source as its language reads it.
func (w *Weaving) read(at int) text {
	w.recent.Lock()
	defer w.recent.Unlock()
	if s := &w.sources[at]; w.recent.has == nil || w.recent.at != at {
		w.recent.at, w.recent.has = at, languages[s.Language].read(w, s)
	}
	return w.recent.has
}

// longestID limits ids, which are texts in assembly code.
const longestID = 1000

// name returns what the notes about a region say: its kind and its id.
func (l *located) name() string { return string(l.Kind) + ":" + l.ID }

// edit is a text to insert into a source.
type edit struct {
	at    int // byte of the source before which the text is inserted
	depth int // of the region
	end   bool
	text  string
}

// apply inserts texts. At one place regions end before others begin, inner ones end before outer ones, and
// outer ones begin before inner ones.
func apply(text []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int {
		inner := cmp.Compare(a.depth, b.depth)
		if a.end {
			inner = -inner
		}
		return cmp.Or(cmp.Compare(a.at, b.at), endsFirst(a, b), inner)
	})
	var out []byte
	from := 0
	for _, e := range edits {
		out = append(append(out, text[from:e.at]...), e.text...)
		from = e.at
	}
	return append(out, text[from:]...)
}

func endsFirst(a, b edit) int {
	switch {
	case a.end == b.end:
		return 0
	case a.end:
		return -1
	}
	return 1
}

// lines has where the lines of a text begin.
type lines []int32

func linesOf(text []byte) lines {
	starts := lines{0}
	for i, b := range text {
		if b == '\n' {
			starts = append(starts, int32(i+1))
		}
	}
	return starts
}

// offset returns the byte at a position, whose columns count bytes from 1. It is -1 if there is no such line.
func (l lines) offset(line, column int) int {
	if line < 1 || line > len(l) || column < 1 {
		return -1
	}
	return int(l[line-1]) + column - 1
}

// of returns the number of the line with a byte, from 1.
func (l lines) of(offset int) int {
	i, found := slices.BinarySearch(l, int32(offset))
	if found {
		return i + 1
	}
	return i
}

// extent returns where the text of a region begins and ends. ok is false if the source has no such text.
func (l *located) extent(of lines, size int) (start, end int, ok bool) {
	column, endLine, endColumn := 0, 0, 0
	switch {
	case l.Code != nil:
		column, endLine, endColumn = l.Code.Column, l.Code.EndLine, l.Code.EndColumn
	case l.Extent != nil:
		column, endLine, endColumn = l.Extent.Column, l.Extent.EndLine, l.Extent.EndColumn
	}
	start, end = of.offset(l.Line, column), of.offset(endLine, endColumn)+1
	return start, end, start >= 0 && end > start && end <= size
}
