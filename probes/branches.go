package probes

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"time"

	"mirador/mir/translate"
	"mirador/probes/deliver"
	"mirador/sir"
)

// branches finds branches of an if or a switch. Machine code does not tell what they are in the source, so the source is
// read: the file that the debug information names, with the rights of the caller. The structures of the sources that
// were asked for last are kept.
type branches struct {
	app   *App
	mu    sync.Mutex
	known map[string]outlined
}

// outlined is the structure of a source file, as it was at a time.
type outlined struct {
	written time.Time
	size    int64
	program sir.Program
}

// mostOutlined limits the structures that an application keeps, and mostSource the bytes of a file.
const (
	mostOutlined = 16
	mostSource   = 16 << 20
)

// finder returns the function that finds branches for a caller, nil if sources are not read.
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
		source, err := b.outline(ctx, file, built)
		if err != nil {
			return nil, fmt.Errorf("branches are found by the source of %s, but %w", of.Name, err)
		}
		choice, branch := branchOf(&source, of, line, inside)
		if branch == nil {
			return nil, fmt.Errorf("%s has no function %s at line %d with a branch %s", file, of.Name, line, inside[1:])
		}
		found, err := m.Branch(ctx, choice, branch)
		if err != nil {
			return nil, err
		}
		r := *found
		r.ID = of.ID + inside
		return &r, nil
	}
}

// outline returns the structure of a source file from which a program was built at a time.
func (b *branches) outline(ctx context.Context, file string, built time.Time) (sir.Program, error) {
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
	known, ok := b.known[file]
	b.mu.Unlock()
	if ok && known.written.Equal(info.ModTime()) && known.size == info.Size() {
		return known.program, nil
	}
	text, err := io.ReadAll(io.LimitReader(f, mostSource+1)) // one more is refused
	if err != nil {
		return sir.Program{}, err
	}
	p, err := b.app.registry.config.Outline(ctx, "p", file, text)
	if err != nil {
		return sir.Program{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil || len(b.known) >= mostOutlined {
		b.known = map[string]outlined{}
	}
	b.known[file] = outlined{info.ModTime(), info.Size(), p}
	return p, nil
}

// branchOf returns a branch of a function in the structure of a source, and the region whose part it is. The function has
// the same name or symbol, and is declared at a line.
func branchOf(p *sir.Program, of *sir.Region, line int, inside string) (choice, branch *sir.Region) {
	for unit := range p.All() {
		if unit.Extent == nil || line < unit.Line || line > unit.Extent.EndLine || !sameUnit(unit, of) {
			continue
		}
		all := sir.Program{Regions: unit.Regions}
		for r := range all.All() {
			for i := range r.Regions {
				if b := &r.Regions[i]; b.Kind == sir.Branch && b.ID == unit.ID+inside && path.Dir(b.ID) == path.Dir(r.ID) {
					return r, b
				}
			}
		}
	}
	return nil, nil
}

// sameUnit reports whether a unit of a source is a function of a program. Where the source does not tell the symbol, it
// has the name.
func sameUnit(unit, of *sir.Region) bool {
	name, _, _ := strings.Cut(of.Name, "(")
	return unit.Symbol != "" && unit.Symbol == of.Symbol || unit.Symbol == "" && (unit.Name == name || unit.Name == of.Name)
}
