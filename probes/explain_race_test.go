package probes

import (
	"fmt"
	"sync"
	"testing"

	"mirador/mir/translate"
	"mirador/omis"
)

// TestNamesWhileProbesAreRemoved removes probes while the explanation of a placement names another.
func TestNamesWhileProbesAreRemoved(t *testing.T) {
	const many = 200
	for range 50 {
		a := &App{}
		for i := range many {
			w := &installed{}
			w.handles = translate.Handles{Requests: []omis.Token{omis.Token(fmt.Sprintf("%s_%d", omis.ClassCSR, i))}}
			a.probes = append(a.probes, &Probe{id: probeID(i), app: a, work: w})
		}
		last := a.probes[many-1]
		why := fmt.Sprintf("shares with %s", last.work.handles.Requests[0])
		var remover sync.WaitGroup
		list := a.Probes()
		remover.Go(func() {
			for i := range many - 1 {
				a.strike(list[i : i+1])
			}
		})
		for range 20 {
			if got := a.named(why); got != "shares with "+last.id {
				t.Errorf("%q", got)
			}
		}
		remover.Wait()
	}
}
