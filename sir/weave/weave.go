// Package weave writes regions into source files: where a region begins and ends, the woven program has an
// instruction nop with a note that names the region. Package sir/binary finds the notes. A region ends whatever
// way control takes out of it: by its end, return, break, goto or an exception.
//
// A package below reads and writes each language; package woven is what they share. None starts goroutines or touches files.
// Texts and ids may come from strangers: what is written into a source has no characters but those of names.
package weave

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"mirador/sir"
	"mirador/sir/weave/c"
	"mirador/sir/weave/fortran"
	"mirador/sir/weave/golang"
	"mirador/sir/weave/java"
	"mirador/sir/weave/woven"
)

// What callers need of package woven.
type (
	Source  = woven.Source
	File    = woven.File
	Refusal = woven.Refusal
)

// Weaving has the sources of a program, as they are without woven regions. It may be used from any goroutine.
type Weaving struct {
	program woven.Program
	regions map[string]*woven.Region
	recent  recent
}

// language is what weaving knows of a language.
type language struct {
	read func(p *woven.Program, source int) text
	sign string // what woven sources contain, and others do not
	// beside returns files that a program with woven regions needs, if there are any. The regions are by source.
	beside func(p *woven.Program, regions [][]*woven.Region) []File
}

// languages are those whose sources can be woven.
var languages = map[string]language{
	"c":       {read: by(c.Read), sign: "MIRADOR_WEAVING("},
	"c++":     {read: by(c.Read), sign: "MIRADOR_WEAVING("},
	"go":      {read: by(golang.Read), sign: "mirador_open"},
	"java":    {read: by(java.Read), sign: "Mirador.on)", beside: java.Beside},
	"fortran": {read: by(fortran.Read), sign: "call miradorb", beside: fortran.Beside},
}

func by[T text](read func(*woven.Program, int) T) func(*woven.Program, int) text {
	return func(p *woven.Program, source int) text { return read(p, source) }
}

// text is a source as its language reads it.
type text interface {
	// Weave returns the source with some regions, in the order of their ids. The error has a *Refusal for each
	// region that cannot be woven.
	Weave(regions []*woven.Region) ([]byte, error)
}

// recent is the source that was looked at last, because requests come one by one.
type recent struct {
	sync.Mutex
	at  int
	has text
}

// New returns the weaving of a program. The id, of 16 hexadecimal digits or more, is written into the sources, so that
// the program that is built from them tells which weaving it is of.
func New(id string, p *sir.Program, sources []Source) (*Weaving, error) {
	w := &Weaving{regions: map[string]*woven.Region{}, program: woven.Program{ID: id, Sources: sources, Regions: make([][]*woven.Region, len(sources)), Macros: map[string]bool{}, Jumping: map[string]bool{}}}
	for _, s := range sources {
		for m := range woven.Macros(s.Text) {
			if m.Parameters {
				w.program.Macros[m.Name] = true
			}
			if fortran.Jumps(m.Text) {
				w.program.Jumping[m.Name] = true
			}
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

func (w *Weaving) add(regions []sir.Region, around *woven.Region) {
	for i := range regions {
		r := &regions[i]
		l := &woven.Region{Region: r, Around: around}
		if around != nil {
			l.Depth = around.Depth + 1
		}
		l.Source = slices.IndexFunc(w.program.Sources, func(s Source) bool { return s.Path == r.File && !s.Fixed })
		if l.Source >= 0 {
			w.regions[r.ID] = l
			w.program.Regions[l.Source] = append(w.program.Regions[l.Source], l)
		}
		w.add(r.Regions, l)
	}
}

// Memory returns how many bytes the weaving may take: a source takes up to 10 times its size while it is woven.
func (w *Weaving) Memory() (n int64) {
	for _, s := range w.program.Sources {
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
		return &Refusal{ID: id, Why: "the sources have no such region"}
	}
	_, err := w.weave(l.Source, []*woven.Region{l})
	return err
}

// Weave returns the texts of all sources with some regions woven in, in their order, and behind them files that are
// beside sources. The error has a *Refusal for each region that cannot be woven.
func (w *Weaving) Weave(ids []string) (files []File, err error) {
	bySource := make([][]*woven.Region, len(w.program.Sources))
	var wrong []error
	for _, id := range ids {
		if l := w.regions[id]; l == nil {
			wrong = append(wrong, &Refusal{ID: id, Why: "the sources have no such region"})
		} else if !slices.Contains(bySource[l.Source], l) {
			bySource[l.Source] = append(bySource[l.Source], l)
		}
	}
	for i, s := range w.program.Sources {
		text, err := w.weave(i, bySource[i])
		wrong = append(wrong, err)
		if len(bySource[i]) == 0 {
			text = s.Text
		}
		files = append(files, File{Source: i, Text: text})
	}
	for _, name := range slices.Sorted(maps.Keys(languages)) {
		if l := languages[name]; l.beside != nil {
			files = append(files, l.beside(&w.program, bySource)...)
		}
	}
	return files, errors.Join(wrong...)
}

// weave returns the text of a source with regions woven in.
func (w *Weaving) weave(source int, regions []*woven.Region) ([]byte, error) {
	if len(regions) == 0 {
		return nil, nil
	}
	slices.SortFunc(regions, func(a, b *woven.Region) int { return cmp.Compare(a.ID, b.ID) })
	return w.read(source).Weave(regions)
}

// read returns a source as its language reads it.
func (w *Weaving) read(at int) text {
	w.recent.Lock()
	defer w.recent.Unlock()
	if s := &w.program.Sources[at]; w.recent.has == nil || w.recent.at != at {
		w.recent.at, w.recent.has = at, languages[s.Language].read(&w.program, at)
	}
	return w.recent.has
}
