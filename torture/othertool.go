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

// otherTool is another tool, which sets and removes uprobes at the beginnings of a victim's
// functions at random. It omits the functions whose counts are compared, because a uprobe at the
// address of our breakpoint would take its hits.
type otherTool struct {
	pid       int
	functions []function
	random    *rand.Rand
	tally     *tally
}

// newOtherTool returns a tool for the functions of the victim's own file.
func newOtherTool(v *victim, all []function, compared map[string]function, random *rand.Rand) *otherTool {
	n := &otherTool{pid: v.PID, random: random, tally: &tally{}}
	for _, f := range all {
		if _, ok := compared[f.name]; !ok && strings.Contains(f.file, "/victim-") {
			n.functions = append(n.functions, f)
		}
	}
	return n
}

func (n *otherTool) run(ctx context.Context) {
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
		n.tally.otherTools += int64(len(stand))
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
