package sir

import (
	"slices"
	"testing"
)

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
