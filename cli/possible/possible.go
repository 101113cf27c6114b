//go:build linux && amd64

package possible

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"mirador/omis/code/x86/landing"
	"mirador/sir"
	"mirador/sir/binary"
)

// Finder finds placements.
type Finder struct{ codes *landing.Catalog }

// New returns a Finder that takes what is known of code from a catalog, and adds to it.
func New(codes *landing.Catalog) *Finder { return &Finder{codes} }

// FindAll sets the placements of all regions of a structure, whose first programs have images. See Find.
func (f *Finder) FindAll(ctx context.Context, images []*binary.Image, s *sir.Structure) error {
	for i, image := range images {
		if err := f.Find(ctx, image, &s.Programs[i]); err != nil {
			return err
		}
	}
	return nil
}

// Find sets the placements of all regions of a program. The regions are those of Image.WithInside, or some of them,
// and belong to the caller; functions and markers may be shared. It uses as many processors as Go does. The error is that of
// ctx, or a file that cannot be read.
func (f *Finder) Find(ctx context.Context, im *binary.Image, p *sir.Program) error {
	source := binary.SourceOf(im)
	if source == nil || len(p.Regions)+len(p.Markers) == 0 { // without a file: the vDSO
		return nil
	}
	opened, err := open(f.codes, source)
	if err != nil {
		return fmt.Errorf("cannot find the placements in %s: %w", p.Path, err)
	}
	p.Regions, p.Markers = slices.Clone(p.Regions), slices.Clone(p.Markers)
	j := &judgement{image: im, file: opened}
	j.all(ctx, p.Regions)
	j.all(ctx, p.Markers)
	return ctx.Err()
}

// judgement is the judgement of the regions of one program.
type judgement struct {
	image *binary.Image
	file  *file
}

// all sets the placements of regions and of those inside them.
func (j *judgement) all(ctx context.Context, regions []sir.Region) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(regions)) {
		workers.Go(func() {
			c := j.file.code()
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(regions) {
					return
				}
				j.try(c, &regions[i])
				c.tidy()
			}
		})
	}
	workers.Wait()
}

// try sets the placements of a region and of those inside it. A damaged file leaves regions without placements.
func (j *judgement) try(c *code, r *sir.Region) {
	defer func() {
		if damage := recover(); damage != nil {
			r.Placements = &sir.Placements{Uncounted: fmt.Sprintf("the file is damaged: %v", damage)}
		}
	}()
	j.set(c, r)
}

// set sets the placements of a region and of those inside it.
func (j *judgement) set(c *code, r *sir.Region) {
	r.Placements = j.of(c, r)
	for i := range r.Regions {
		j.set(c, &r.Regions[i])
	}
}

// of returns the placements of a region, nil for a region in a function that is not counted.
func (j *judgement) of(c *code, r *sir.Region) *sir.Placements {
	entries, err := j.image.Entries(r)
	if err != nil || len(entries) == 0 {
		return without(r, err)
	}
	exits, err := j.image.Exits(r)
	p := c.judge(entries, exits)
	switch {
	case r.Code != nil:
	case err != nil:
		p.Untimed = err.Error()
	case len(exits) == 0:
		p.Untimed = "it never returns"
	}
	return p
}

// without returns the placements of a region that is not counted.
func without(r *sir.Region, why error) *sir.Placements {
	if r.Code != nil || why == nil {
		return nil
	}
	return &sir.Placements{Uncounted: why.Error()}
}
