//go:build linux && amd64

package linux

import (
	"fmt"
	"testing"

	"mirador/omis/linux/subject"
	"mirador/omis/node"
)

// TestEndsWithoutReturn checks that a library call that an exception leaves has no end and does no harm, and that
// a call that ends with a jump into another function ends with the result of that function.
func TestEndsWithoutReturn(t *testing.T) {
	program := build(t, "thrower.cc")
	want := subject.Alone(t, program)
	n := openNode(t)
	g := start(t, program)
	counts := make(map[string]int)
	sums := make(map[string]uint64)
	var cancels []func() error
	for _, name := range []string{"risky", "qsort", "hop", "hopped"} {
		for _, kind := range []node.EventKind{node.EventLibCallStarted, node.EventLibCallEnded} {
			cancel, err := n.Watch(node.Watch{Event: kind, Proc: g.ID, Name: name}, func(h *node.Hit) {
				counts[fmt.Sprint(name, " ", kind == node.EventLibCallEnded)]++
				if kind == node.EventLibCallEnded {
					sums[name] += h.Params[0].N
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			cancels = append(cancels, cancel)
		}
	}
	g.Begin()
	if got := g.Line(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, cancel := range cancels {
		if err := cancel(); err != nil {
			t.Error(err)
		}
	}
	expect := map[string]int{
		"risky false": 600, "risky true": 400, "qsort false": 600, "qsort true": 400,
		"hop false": 600, "hop true": 600, "hopped false": 600, "hopped true": 600,
	}
	if fmt.Sprint(counts) != fmt.Sprint(expect) {
		t.Errorf("got %v, want %v", counts, expect)
	}
	const upTo300, thirds = 300 * 299 / 2, 3 * 100 * 99 / 2
	if sums["risky"] != 2*(upTo300-thirds) || sums["hop"] != 2*(2*upTo300+300) || sums["hopped"] != sums["hop"] {
		t.Errorf("the sums of the results are %v", sums)
	}
	checkUntouched(t, g)
}
