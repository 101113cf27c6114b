package sir

import (
	"slices"
	"testing"
)

func TestWithPrefix(t *testing.T) {
	s := &Structure{Programs: []Program{
		{Path: "/bin/a", Regions: []Region{{ID: "a:f", Regions: []Region{{ID: "a:f.1"}}}, {ID: "a:g"}}}, {Path: "/bin/b", Regions: []Region{{ID: "b:f"}}},
	}}
	for _, c := range []struct {
		prefix string
		most   int
		want   [2]int
	}{{"", 9, [2]int{3, 1}}, {"a:f", 9, [2]int{2, 0}}, {"a:f", 1, [2]int{1, 0}}, {"b", 1, [2]int{0, 1}}, {"", 2, [2]int{2, 1}}, {"x", 1, [2]int{}}} {
		part := s.WithPrefix(c.prefix, c.most)
		if got := [2]int{len(part.Programs[0].Regions), len(part.Programs[1].Regions)}; got != c.want || part.Programs[1].Path != "/bin/b" {
			t.Errorf("%q, at most %d: %d regions, want %d", c.prefix, c.most, got, c.want)
		}
	}
	s.Programs[1].Regions = []Region{{ID: "b:func_1", Name: "func_1"}, {ID: "b:f", Name: "f"}, {ID: "b:func_2", Name: "func_2"}}
	if r := s.WithPrefix("b:", 2).Programs[1].Regions; len(r) != 2 || r[0].Name != "f" || r[1].Name != "func_1" {
		t.Errorf("with names first they are %+v", r)
	}
	if r := s.WithPrefix("a:f", 1).Programs[0].Regions[0]; r.Regions != nil || s.Programs[0].Regions[0].Regions == nil {
		t.Error("the region has regions inside it, or has lost them")
	}
}

func TestIndex(t *testing.T) {
	p := &Program{Regions: []Region{
		{ID: "a:f", Name: "f", Symbol: "f"}, {ID: "a:_Z1fi", Name: "f", Symbol: "_Z1fi"}, {ID: "a:g", Name: "g", Symbol: "g", Regions: []Region{{ID: "a:g.1", Name: "loop"}}},
	}}
	x := NewIndex(p)
	if x.ByID("a:g") != &p.Regions[2] || x.ByID("g") != nil {
		t.Errorf("a:g is %v, g is %v", x.ByID("a:g"), x.ByID("g"))
	}
	if inner := x.ByID("a:g.1"); inner != &p.Regions[2].Regions[0] {
		t.Errorf("a:g.1 is %v", inner)
	}
	for name, want := range map[string][]*Region{
		"f": {&p.Regions[0], &p.Regions[1]}, "_Z1fi": {&p.Regions[1]}, "g": {&p.Regions[2]}, "a:g": nil,
	} {
		if got := x.ByName(name); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
