package sir

import (
	"slices"
	"strings"
)

// Around returns all programs, with the functions whose ids begin with a prefix, or that contain
// the regions whose ids do.
func (s *Structure) Around(prefix string) *Structure {
	return s.keep(func(regions []Region) []Region {
		return slices.DeleteFunc(slices.Clone(regions), func(r Region) bool {
			return !strings.HasPrefix(r.ID, prefix) && !strings.HasPrefix(prefix, r.ID+"/")
		})
	})
}

// Cut returns the structure without the regions inside more than depth - 1 others.
func (s *Structure) Cut(depth int) *Structure {
	return s.keep(func(regions []Region) []Region { return cut(regions, depth) })
}

// Cut removes the regions that have depth or more regions around them. This one is the first of those.
func (r *Region) Cut(depth int) { r.Regions = cut(r.Regions, depth-1) }

func cut(regions []Region, depth int) []Region {
	switch {
	case depth == 0:
		return nil
	case !deeper(regions, depth):
		return regions
	}
	kept := slices.Clone(regions)
	for i := range kept {
		kept[i].Regions = cut(kept[i].Regions, depth-1)
	}
	return kept
}

// deeper reports whether regions have more levels.
func deeper(regions []Region, depth int) bool {
	return len(regions) > 0 && (depth == 0 || slices.ContainsFunc(regions, func(r Region) bool { return deeper(r.Regions, depth-1) }))
}

// Where returns the structure with the regions that are chosen, and those around them.
func (s *Structure) Where(chosen func(*Region) bool) *Structure {
	return s.keep(func(regions []Region) []Region { return where(regions, chosen) })
}

func where(regions []Region, chosen func(*Region) bool) (kept []Region) {
	for _, r := range regions {
		inside := where(r.Regions, chosen)
		if chosen(&r) || len(inside) > 0 {
			r.Regions = inside
			kept = append(kept, r)
		}
	}
	return kept
}

// keep returns all programs with a part of their regions.
func (s *Structure) keep(part func([]Region) []Region) *Structure {
	kept := &Structure{Programs: slices.Clone(s.Programs)}
	for i := range kept.Programs {
		kept.Programs[i].Regions = part(kept.Programs[i].Regions)
		kept.Programs[i].Markers = part(kept.Programs[i].Markers)
	}
	return kept
}
