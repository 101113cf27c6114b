package source

import (
	"slices"
	"testing"

	"mirador/sir"
)

// TestRulesOfJava checks that control goes on from case X: to the next one, and not from case X ->.
func TestRulesOfJava(t *testing.T) {
	text := "class A { int f(int x) { switch (x) { case 1: x++; case 2: break; default: x--; }\n switch (x) { case 1 -> x++; case 2 -> { x--; } default -> f(2); } return x; } }"
	p := read(t, "a", Resource{In: "A.java", Path: "A.java", Text: []byte(text)})
	var falls []bool
	for r := range p.All() {
		if r.Kind == sir.Branch {
			falls = append(falls, r.Code.Falls)
		}
	}
	if want := []bool{true, false, true, false, false, false}; !slices.Equal(falls, want) {
		t.Errorf("the branches go on: %v, want %v", falls, want)
	}
}
