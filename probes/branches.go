package probes

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"mirador/mir/translate"
	"mirador/probes/deliver"
	"mirador/sir"
)

// branches finds regions that only sources have: branches of an if or a switch, and statements. Machine code does not tell what they are in the source, so the source is
// read: the file that the debug information names, with the rights of the caller. The structures of the sources that
// were asked for last are kept.
type branches struct {
	app   *App
	mu    sync.Mutex
	known map[string]outlined
	files []string // that a request named as sources, the latest last
}

// outlined is the structure of a source file, as it was at a time.
type outlined struct {
	written time.Time
	size    int64
	program sir.Program
}

// mostOutlined limits the structures that an application keeps, mostNamed the names of files, and mostSource the bytes of one.
const (
	mostOutlined = 16
	mostNamed    = 1000
	mostSource   = 16 << 20
)

// finder returns the function that finds them for a caller, nil if sources are not read.
func (b *branches) finder(ctx context.Context) func(*translate.Module, *sir.Region, string) (*sir.Region, error) {
	if b.app.registry.config.Outline == nil {
		return nil
	}
	return func(m *translate.Module, of *sir.Region, inside string) (*sir.Region, error) {
		if m.Branch == nil || m.Declared == nil {
			return nil, fmt.Errorf("%s has no code that is understood", m.Path)
		}
		file, line, built, err := m.Declared(ctx, of)
		if err != nil {
			return nil, err
		}
		if file == "" {
			return nil, fmt.Errorf("the program has no debug information that says where %s is declared: compile it with -g", of.Name)
		}
		source, err := b.find(ctx, file, built)
		if err != nil {
			return nil, fmt.Errorf("such a region is found by the source of %s, but %w", of.Name, err)
		}
		choice, branch := branchOf(&source, of, line, inside)
		if branch == nil {
			return nil, fmt.Errorf("%s has no function %s at line %d with a region %s", file, of.Name, line, inside[1:])
		}
		if choice == nil && !branch.IsStatement() {
			return nil, fmt.Errorf("a region of the type %s is not found in machine code%s", branch.Kind, instead(ctx, m, branch))
		}
		found, err := m.Branch(ctx, choice, branch)
		if err != nil {
			return nil, err
		}
		if why := found.Code.Uncounted; why != "" {
			return nil, fmt.Errorf("it cannot be counted: %s%s", why, instead(ctx, m, branch))
		}
		r := *found
		r.ID = of.ID + inside
		return &r, nil
	}
}

// mostTried is the number of lines of a region that are tried.
const mostTried = 10

// instead names the first line of a region that can be counted.
func instead(ctx context.Context, m *translate.Module, r *sir.Region) string {
	for _, file := range []string{path.Base(r.File), r.File} {
		for line := r.Line; m.Line != nil && line <= min(r.Code.EndLine, r.Line+mostTried); line++ {
			if line == r.Line && r.Kind == sir.Branch && r.Code.EndLine > line {
				continue // the line of the condition
			}
			if l, err := m.Line(ctx, file, line); err == nil && l.Code.Uncounted == "" {
				return "; this line in it can be counted: " + l.ID
			}
		}
	}
	return "; no line in it can be counted"
}

// NameSources says where sources of the application's programs are, which may not be where the programs were built. The
// next gateway knows it too, because it finds the branches of probes again.
func (r *Registry) NameSources(app string, files []string) error {
	a, err := r.App(app)
	if err != nil {
		return err
	}
	a.op.Lock()
	defer a.op.Unlock()
	if !a.branches.name(files) {
		return nil
	}
	return a.writeSelf()
}

// name adds names of files, and reports whether that changed something.
func (b *branches) name(files []string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.files
	b.files = append(slices.DeleteFunc(slices.Clone(before), func(f string) bool { return slices.Contains(files, f) }), files...)
	b.files = b.files[max(0, len(b.files)-mostNamed):]
	return !slices.Equal(before, b.files)
}

// named returns the names of files, the latest last.
func (b *branches) named() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.files
}

// find returns the structure of the file that the debug information names, or of the named one at another place whose path has the
// longest end in common with it.
func (b *branches) find(ctx context.Context, file string, built time.Time) (p sir.Program, err error) {
	if err = fmt.Errorf("%s is the name of a file in another folder", file); path.IsAbs(file) {
		if p, err = b.outline(ctx, file, file, built); err == nil {
			return p, nil
		}
	}
	const name = "if the file is at another place, name it as a resource of a sirreq of this application"
	most, found := 0, []string{}
	for _, f := range b.named() {
		n := commonEnd(f, file)
		if n > most {
			most, found = n, nil
		}
		if n > 0 && n == most {
			found = append(found, f)
		}
	}
	switch len(found) {
	case 0:
		return p, fmt.Errorf("%w; %s", err, name)
	case 1:
		if p, err = b.outline(ctx, found[0], file, built); err != nil {
			err = fmt.Errorf("%w; if it is as it was then, give it an earlier time: touch -r PROGRAM FILE", err)
		}
		return p, err
	}
	return p, fmt.Errorf("%w; several named files may be meant: %s", err, strings.Join(found[:min(len(found), mostShown)], ", "))
}

// mostShown is the number of files in an error.
const mostShown = 4

// commonEnd returns how many names at the end of two paths are equal.
func commonEnd(a, b string) (n int) {
	names, others := strings.Split(path.Clean(a), "/"), strings.Split(path.Clean(b), "/")
	for n < len(names) && n < len(others) && names[len(names)-1-n] == others[len(others)-1-n] {
		n++
	}
	return n
}

// outline returns the structure of a source file from which a program was built at a time. The program calls it by another name.
func (b *branches) outline(ctx context.Context, file, name string, built time.Time) (sir.Program, error) {
	f, err := deliver.Open(userOf(ctx), file)
	if err != nil {
		return sir.Program{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return sir.Program{}, err
	case info.ModTime().After(built):
		return sir.Program{}, fmt.Errorf("%s was changed after the program was built: build it again", file)
	}
	b.mu.Lock()
	key := file + "\x00" + name
	known, ok := b.known[key]
	b.mu.Unlock()
	if ok && known.written.Equal(info.ModTime()) && known.size == info.Size() {
		return known.program, nil
	}
	text, err := io.ReadAll(io.LimitReader(f, mostSource+1)) // one more is refused
	if err != nil {
		return sir.Program{}, err
	}
	p, err := b.app.registry.config.Outline(ctx, "p", name, text)
	if err != nil {
		return sir.Program{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil || len(b.known) >= mostOutlined {
		b.known = map[string]outlined{}
	}
	b.known[key] = outlined{info.ModTime(), info.Size(), p}
	return p, nil
}

// branchOf returns a region of a function in the structure of a source, and if it is a branch of an if or a switch, that one. The
// function has the same name or symbol, and is declared at a line.
func branchOf(p *sir.Program, of *sir.Region, line int, inside string) (choice, branch *sir.Region) {
	for unit := range p.All() {
		if unit.Extent == nil || line < unit.Line || line > unit.Extent.EndLine || !sameUnit(unit, of) {
			continue
		}
		all := sir.Program{Regions: unit.Regions}
		for r := range all.All() {
			switch {
			case r.ID != unit.ID+inside:
			case r.Kind == sir.Branch && !r.IsStatement():
				return choiceOf(&all, r), r
			default:
				return nil, r
			}
		}
	}
	return nil, nil
}

// choiceOf returns the if or switch that has a branch.
func choiceOf(p *sir.Program, branch *sir.Region) *sir.Region {
	for r := range p.All() {
		for i := range r.Regions {
			if &r.Regions[i] == branch {
				return r
			}
		}
	}
	return nil
}

// sameUnit reports whether a unit of a source is a function of a program. Where the source does not tell the symbol, it
// has the name.
func sameUnit(unit, of *sir.Region) bool {
	name, _, _ := strings.Cut(of.Name, "(")
	return unit.Symbol != "" && unit.Symbol == of.Symbol || unit.Symbol == "" && (unit.Name == name || unit.Name == of.Name)
}
