package sir

import (
	"slices"
	"testing"
)

func TestIndex(t *testing.T) {
	p := &Program{Units: []Unit{
		{ID: "a:f", Name: "f", Symbol: "f"}, {ID: "a:_Z1fi", Name: "f", Symbol: "_Z1fi"}, {ID: "a:g", Name: "g", Symbol: "g"},
	}}
	x := NewIndex(p)
	if x.ByID("a:g") != &p.Units[2] || x.ByID("g") != nil {
		t.Errorf("a:g is %v, g is %v", x.ByID("a:g"), x.ByID("g"))
	}
	for name, want := range map[string][]*Unit{
		"f": {&p.Units[0], &p.Units[1]}, "_Z1fi": {&p.Units[1]}, "g": {&p.Units[2]}, "a:g": nil,
	} {
		if got := x.ByName(name); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
