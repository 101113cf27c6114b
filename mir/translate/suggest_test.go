package translate

import (
	"testing"

	"pgregory.net/rapid"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"multiply", "multiply", 0}, {"multply", "multiply", 1}, {"multiply", "multiplies", 3},
		{"f.1a2b", "f.1a2c", 1}, {"", "ab", 2}, {"spin", "spni", 2},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestDistanceIsSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-c]{0,8}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if x, y := distance(a, b), distance(b, a); x != y {
			t.Fatalf("distance(%q, %q) = %d, the other way %d", a, b, x, y)
		}
	})
}
