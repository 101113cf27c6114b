//go:build linux && amd64

package main

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"mirador/omis/host/uprobe"
)

// neighbour is another tool that sets uprobes at the beginnings of functions of a victim and
// takes them out, at random. It leaves out the functions whose calls are compared: a uprobe at
// a breakpoint of ours takes the hits away.
type neighbour struct {
	pid       int
	functions []function
	random    *rand.Rand
	tally     *tally
}

// newNeighbour makes a neighbour for the functions of the victim's own file.
func newNeighbour(v *victim, all []function, compared map[string]function, random *rand.Rand) *neighbour {
	n := &neighbour{pid: v.pid(), random: random, tally: &tally{}}
	for _, f := range all {
		if _, ok := compared[f.name]; !ok && strings.Contains(f.file, "/victim-") {
			n.functions = append(n.functions, f)
		}
	}
	return n
}

func (n *neighbour) run(ctx context.Context) {
	const most, longest = 4, 100 * time.Millisecond
	for len(n.functions) > 0 && ctx.Err() == nil {
		var stand []*uprobe.Uprobe
		for range 1 + n.random.IntN(most) {
			f := n.functions[n.random.IntN(len(n.functions))]
			u, err := uprobe.Set(n.pid, f.file, f.at, uprobe.AtEntry)
			if err != nil {
				n.tally.refuse("another tool: " + err.Error())
				continue
			}
			stand = append(stand, u)
		}
		n.tally.neighbours += int64(len(stand))
		select {
		case <-time.After(time.Duration(n.random.Int64N(int64(longest)))):
		case <-ctx.Done():
		}
		var all sync.WaitGroup
		for _, u := range stand {
			all.Go(func() { u.Close() })
		}
		all.Wait()
	}
}
