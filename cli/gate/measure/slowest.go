package measure

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"mirador/cli/gate/request"
	"mirador/cli/gate/verdict"
	"mirador/mir"
)

// slowest is the round of a duet in which head was slowest, compared with base.
type slowest struct {
	ratio  float64
	took   float64               // a call of head, in milliseconds
	calls  [2]map[string]threads // of base and of head, by the names of threads
	stacks []string              // of head's threads at the end of the round
}

// threads are what the threads of one name have measured.
type threads []float64

const (
	deepest    = 12 // frames of a stack
	mostShown  = 3  // threads, and stacks
	loneThread = 1
)

// remember keeps what the programs did in a round in which head was slower than the limit allows, and slower than in
// any round before. Both are stopped, so their threads are where the round has left them.
func (r *Runner) remember(ctx context.Context, limits []request.Limit, pairs []Pair, players []*player, blocks []*block) error {
	if r.slowest == nil {
		r.slowest = make([]slowest, len(limits))
	}
	for i, l := range limits {
		if p := pairs[i]; !(p.Ratio > max(math.Log1p(l.Change), r.slowest[i].ratio)) {
			continue
		}
		now := slowest{ratio: pairs[i].Ratio, took: pairs[i].Head}
		for n, p := range players[:2] {
			found, err := r.threadsOf(ctx, p)
			switch {
			case ctx.Err() != nil:
				return err
			case err != nil:
				r.Remark("The threads of %s cannot be read: %v", p.name, err)
			}
			now.calls[n] = byName(blocks[n].found[i], found)
			now.stacks = stacksOf(found)
		}
		r.slowest[i] = now
	}
	return nil
}

// threadsOf returns the threads of a program by their ids, with names and stacks.
func (r *Runner) threadsOf(ctx context.Context, p *player) (map[string]mir.Entity, error) {
	s, err := r.Client.Snapshot(ctx, p.app, mir.SnapshotRequest{Named: true, Stack: deepest})
	if err != nil {
		return nil, err
	}
	found := map[string]mir.Entity{}
	list := s.Entities
	for len(list) > 0 {
		e := list[0]
		list = append(list[1:], e.Children...)
		if e.Kind == mir.Thread {
			found[e.ID] = e
		}
	}
	return found, nil
}

// byName collects the durations of calls by the names of their threads.
func byName(calls []call, found map[string]mir.Entity) map[string]threads {
	all := map[string]threads{}
	for _, c := range calls {
		name := found[c.thread].Name
		all[name] = append(all[name], float64(c.ns)/1e6)
	}
	return all
}

// stacksOf returns the stacks of threads, each once.
func stacksOf(found map[string]mir.Entity) (stacks []string) {
	for _, e := range found {
		if len(e.Stack) > 0 {
			stacks = append(stacks, e.Name+" in "+strings.Join(e.Stack, " < "))
		}
	}
	slices.Sort(stacks)
	return slices.Compact(stacks)
}

// Slowest says what the slowest round of a limit was like: how long a call took, where the threads of head were at its
// end, and, if there are several, how long each takes. It returns nothing if no round was slower than the limit
// allows.
func (r *Runner) Slowest(limit int) (reasons []string) {
	if limit >= len(r.slowest) || r.slowest[limit].ratio == 0 {
		return nil
	}
	s := &r.slowest[limit]
	text := fmt.Sprintf("(%.4g us in each call, %+.1f %%)", s.took*1e3, 100*math.Expm1(s.ratio))
	if shown := s.stacks[:min(len(s.stacks), mostShown)]; len(shown) > 0 {
		text += " ended with " + strings.Join(shown, "; ")
	}
	reasons = []string{text}
	if len(s.calls[1]) > loneThread {
		reasons = append(reasons, s.byThread()...)
	}
	return reasons
}

// byThread compares the medians of threads with equal names, those with the most time first.
func (s *slowest) byThread() (reasons []string) {
	type share struct {
		name string
		time float64
	}
	var shares []share
	calls := 0
	for name, list := range s.calls[1] {
		shares = append(shares, share{name, verdict.Median(list) * float64(len(list))})
		calls += len(list)
	}
	slices.SortFunc(shares, func(a, b share) int {
		if a.time > b.time {
			return -1
		}
		return strings.Compare(a.name, b.name)
	})
	for _, one := range shares[:min(len(shares), mostShown)] {
		base, head := s.calls[0][one.name], s.calls[1][one.name]
		text := fmt.Sprintf("the thread %s makes %.0f %% of the calls, %.4g us each", one.name, 100*float64(len(head))/float64(calls), verdict.Median(head)*1e3)
		if len(base) > 0 {
			text += fmt.Sprintf(" (base: %.4g us)", verdict.Median(base)*1e3)
		}
		reasons = append(reasons, text)
	}
	return reasons
}
