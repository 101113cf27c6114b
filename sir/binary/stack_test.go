package binary

import (
	"strings"
	"testing"

	"mirador/sir"
)

// TestStackPointer checks that iterations are timed unless they change the stack pointer: in a function
// with an aligned frame they are timed, with an array of variable size inside the loop they are not.
func TestStackPointer(t *testing.T) {
	im := open(t, named(t, "O2"))
	for function, refused := range map[string]bool{"returns_aligned": false, "returns_arrays": true} {
		u := unit(t, im, function)
		inside, err := im.Inside(t.Context(), &u)
		if err != nil {
			t.Fatal(err)
		}
		loops := 0
		for i := range inside {
			if r := &inside[i]; r.Kind == sir.Loop {
				loops++
				body := &r.Regions[0]
				if got := strings.Contains(body.Code.Untimed, "the stack pointer"); got != refused {
					t.Errorf("%s: %q", body.ID, body.Code.Untimed)
				}
			}
		}
		if loops != 1 {
			t.Errorf("%s has %d loops", function, loops)
		}
	}
}
