package binary

import (
	"context"
	"errors"
	"slices"

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

// Units finds the units of Functions.
func (im *Image) Units() sir.Units {
	if len(im.funcs) < many {
		return im.index()
	}
	return im.few
}

func (im *Image) makeProgram(ctx context.Context) (sir.Program, error) {
	p := im.functions()
	p.Regions = slices.Clone(p.Regions)
	return p, im.lines.locate(ctx, p.Regions)
}

func (im *Image) makeFunctions() sir.Program {
	units := make([]sir.Region, 0, len(im.funcs))
	for i := range im.funcs {
		if im.funcs[i].isUnit() {
			units = append(units, im.unit(i))
		}
	}
	marked := im.marked()
	return sir.Program{Path: im.path, BuildID: im.buildID, Weaving: marked.Weaving, Regions: units, Markers: marked.Markers}
}

// isUnit reports whether a function is a unit. The resolver of an IFUNC has the name of the function that it
// selects, but is executed once: a unit of that name would measure the wrong code. A cold part is not
// entered by a call.
func (s *symbol) isUnit() bool { return !s.ifunc && !isCold(s.name) }

// unit returns the unit of a function.
func (im *Image) unit(i int) sir.Region {
	f := &im.funcs[i]
	return sir.Region{
		ID: im.ids().of(i), Name: im.sourceName(f.name), Symbol: printable(f.name),
		Kind: sir.Function, Entry: f.addr, Size: f.size,
	}
}
