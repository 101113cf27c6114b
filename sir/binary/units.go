package binary

import (
	"context"
	"errors"
	"path"
	"slices"
	"strconv"

	"mirador/sir"
	"mirador/sir/safedwarf"
)

// Program returns the structure of the image: its functions as units, in the order of their
// addresses, without their exits. The first call creates it; callers share it and must not
// modify it.
//
// An id has the form PROGRAM:SYMBOL, for example "mmul:dot" or "libc.so.6:malloc". It depends
// only on the base of the path and the function's symbol, so it stays the same after a rebuild
// and on every machine. If it is not unique, a suffix is added, the most stable one first:
// @VERSION for a symbol that is not the default version of its name, ~FILE for one of several
// local functions, and ~2, ~3 in the order of addresses for the rest.
//
// The error is the error of ctx. While the debug information of other programs fills the memory,
// units have no files and lines.
func (im *Image) Program(ctx context.Context) (sir.Program, error) {
	p, err := im.program.get(ctx)
	if errors.Is(err, safedwarf.ErrBudget) {
		return im.functions(), nil
	}
	return p, err
}

// Functions returns Program without the files and lines of the units. To find these takes
// nearly all the time of Program, because all debug information must be read.
func (im *Image) Functions() sir.Program { return im.functions() }

// Index returns an index of the units of Functions. The first call creates it.
func (im *Image) Index() *sir.Index { return im.index() }

func (im *Image) makeProgram(ctx context.Context) (sir.Program, error) {
	p := im.functions()
	p.Regions = slices.Clone(p.Regions)
	return p, im.lines.locate(ctx, p.Regions)
}

func (im *Image) makeFunctions() sir.Program {
	units := make([]sir.Region, 0, len(im.funcs))
	ids := newIdentities(im.base(), im.funcs)
	for _, f := range im.funcs {
		// The resolver of an IFUNC has the name of the function that it selects, but is
		// executed once: a unit of that name would measure the wrong code. A cold part is not
		// entered by a call.
		if f.ifunc || isCold(f.name) {
			continue
		}
		units = append(units, sir.Region{
			ID: ids.of(f), Name: im.sourceName(f.name), Symbol: printable(f.name),
			Kind: sir.Function, Entry: f.addr, Size: f.size,
		})
	}
	woven, weaving := im.woven(units)
	return sir.Program{Path: im.path, BuildID: im.buildID, Weaving: weaving, Regions: units, Markers: append(im.markers(), woven...)}
}

// identities assigns a unique id to every function.
type identities struct {
	base   string
	shared map[string]int // number of functions with the symbol of a local one
	used   map[string]int
}

func newIdentities(base string, funcs []symbol) *identities {
	ids := &identities{base: printable(base), shared: map[string]int{}, used: make(map[string]int, len(funcs))}
	for i := range funcs {
		if funcs[i].local {
			ids.shared[funcs[i].name] = 0
		}
	}
	for i := range funcs {
		if n, ok := ids.shared[funcs[i].name]; ok {
			ids.shared[funcs[i].name] = n + 1
		}
	}
	return ids
}

func (ids *identities) of(f symbol) string {
	id := ids.base + ":" + printable(f.name)
	switch {
	case f.version != "":
		id += "@" + printable(f.version)
	case f.local && ids.shared[f.name] > 1 && f.file != "":
		id += "~" + printable(path.Base(f.file))
	}
	ids.used[id]++
	n := ids.used[id]
	for n > 1 {
		next := id + "~" + strconv.Itoa(n)
		if ids.used[next] == 0 {
			ids.used[id] = n
			ids.used[next]++
			return next
		}
		n++
	}
	return id
}
