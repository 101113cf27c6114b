package syntax

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
		if got := Distance(c.a, c.b, 9); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestDistanceIsSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-c]{0,8}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if x, y := Distance(a, b, 9), Distance(b, a, 9); x != y {
			t.Fatalf("Distance(%q, %q) = %d, the other way %d", a, b, x, y)
		}
	})
}

// A distance above the limit may be any number above it.
func TestDistanceAboveLimit(t *testing.T) {
	for _, limit := range []int{0, 2, 4} {
		if got := Distance("multiply", "sum", limit); got <= limit {
			t.Errorf("Distance with limit %d = %d", limit, got)
		}
	}
}
