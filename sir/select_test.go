package sir

import (
	"strings"
	"testing"
)

// ids lists the ids of all regions, each before those inside it.
func ids(s *Structure) string {
	var all []string
	for i := range s.Programs {
		for r := range s.Programs[i].All() {
			all = append(all, r.ID)
		}
	}
	return strings.Join(all, " ")
}

func TestSelect(t *testing.T) {
	loop := func(id string, inside ...Region) Region { return Region{ID: id, Kind: Loop, Regions: inside} }
	s := &Structure{Programs: []Program{
		{Path: "/bin/a", Regions: []Region{loop("a:f", loop("a:f/loop1", loop("a:f/loop1/body")), loop("a:f/loop2")), loop("a:fg"), loop("a:g")}},
		{Path: "/bin/b", Regions: []Region{loop("b:f")}},
	}}
	all := ids(s)
	for want, got := range map[string]*Structure{
		all: s.Around(""),
		"a:f a:f/loop1 a:f/loop1/body a:f/loop2 a:fg":      s.Around("a:f"),
		"a:f a:f/loop1 a:f/loop1/body a:f/loop2":           s.Around("a:f/loop1"),
		"a:f a:fg a:g b:f":                                 s.Cut(1),
		"a:f a:f/loop1 a:f/loop2 a:fg a:g b:f":             s.Cut(2),
		"a:f a:f/loop1 a:f/loop1/body":                     s.Where(func(r *Region) bool { return strings.HasSuffix(r.ID, "body") }),
		"a:f a:f/loop1 a:f/loop1/body a:f/loop2 a:fg  b:f": s.Where(func(r *Region) bool { return strings.Contains(r.ID, ":f") }),
	} {
		if len(got.Programs) != 2 || ids(got) != strings.ReplaceAll(want, "  ", " ") {
			t.Errorf("%s, want %s", ids(got), want)
		}
	}
	if ids(s) != all {
		t.Errorf("the structure is now %s", ids(s))
	}
}
