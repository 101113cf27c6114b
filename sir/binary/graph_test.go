package binary

import (
	"bytes"
	"slices"
	"testing"

	"mirador/sir/flow"
)

// TestGraphsAreWhole checks that nearly all functions of real programs are understood, with their
// switches, parts and handlers, and that blocks do not overlap.
func TestGraphsAreWhole(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variant, im *Image) {
		understood, refused := 0, 0
		for _, f := range im.funcs {
			if coldSuffix.MatchString(f.name) {
				continue
			}
			g, err := im.analyse(f)
			if err != nil {
				if refused++; f.file == "shapes.c" || f.file == "classes.cc" {
					t.Errorf("%s: %v", f.name, err)
				}
				continue
			}
			understood++
			blocks := slices.Clone(g.Blocks)
			slices.SortFunc(blocks, func(a, b flow.Block) int { return int(int64(a.Start - b.Start)) })
			for i := range blocks[1:] {
				if blocks[i].End > blocks[i+1].Start {
					t.Errorf("%s: the blocks at %#x and %#x overlap", f.name, blocks[i].Start, blocks[i+1].Start)
				}
			}
		}
		if refused*10 > understood && refused > 3 {
			t.Errorf("%d functions are understood, %d are not", understood, refused)
		}
	})
}

// TestHandlersAreReached checks that code which only exceptions lead to belongs to its function.
func TestHandlersAreReached(t *testing.T) {
	for _, name := range []string{"cxx-O0", "cxx-O2"} {
		im := open(t, named(t, name))
		pads := 0
		for _, h := range im.handlers() {
			f, ok := im.find(h.low)
			if !ok || f.addr != h.low {
				continue
			}
			found, err := im.landingPads(f)
			if err != nil {
				t.Error(err)
			}
			g, err := im.analyse(f)
			if err != nil {
				t.Error(err)
				continue
			}
			for _, p := range found {
				pads++
				if !slices.ContainsFunc(g.Blocks, func(b flow.Block) bool { return b.Start == p.pad && len(b.Pred) > 0 }) {
					t.Errorf("%s: no block begins at the handler %#x", f.name, p.pad)
				}
			}
		}
		if pads < 2 {
			t.Errorf("%s: %d handlers", name, pads)
		}
	}
}

// FuzzInside finds the regions inside the functions of damaged programs.
func FuzzInside(f *testing.F) {
	whole := small(f)
	for i := 0; i < len(whole); i += 997 {
		f.Add(i, byte(0xff), 100, byte(0xe9))
	}
	f.Fuzz(func(t *testing.T, at int, value byte, other int, more byte) {
		bad := bytes.Clone(whole)
		bad[uint(at)%uint(len(bad))], bad[uint(other)%uint(len(bad))] = value, more
		if im := read(t, bad); im != nil {
			for _, u := range program(im).Regions {
				_, _ = im.Inside(t.Context(), &u)
			}
		}
	})
}
