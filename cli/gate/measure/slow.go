package measure

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"mirador/cli/gate/request"
	"mirador/cli/gate/verdict"
	"mirador/omis"
)

// A self-test slows a unit of the program down by a known amount, without changing the program: the
// probe at the beginning of the unit executes many times an action that has no other effect.

// injection is what the probe at the beginning of a unit executes.
type injection struct {
	action action
	times  int
}

// action is an action of OMIS whose cost does not vary.
type action struct {
	make  string // the request that makes its object
	text  string // what is executed, with the object's token
	most  int    // times in a request, whose length the gateway limits
	tried int    // times in each call while its cost is measured; with more, a block would have too few calls
}

// actions are the possible actions, the shortest first: about 2 ns and about 50 ns.
var actions = []action{
	{"pa_counter_create()", " pa_counter_add([%[1]s],1)", 2000, 300},
	{`pa_timer_create3("ordered",1)`, " pa_timer_start([%[1]s]) pa_timer_stop([%[1]s])", 1000, 20},
}

// trials is the number of starts that measure what an action costs.
const trials = 3

// Slow returns the side with its units slowed down: the median duration of each limit's unit grows by
// the fraction part.
func (r *Runner) Slow(ctx context.Context, s Side, limits []request.Limit, part float64) (Side, error) {
	defer func() { r.sample, r.slowest = nil, nil }() // programs that are slowed down make fewer calls
	for _, a := range actions {
		slow := s
		for range limits {
			slow.injected = append(slow.injected, injection{a, a.tried})
		}
		// The second time tries nearly what is needed: many actions cost not quite as much as a few, for each.
		for range 2 {
			if err := r.dose(ctx, s, &slow, limits, part); err != nil {
				return slow, err
			}
		}
		over := slices.IndexFunc(slow.injected, func(in injection) bool { return in.times >= a.most })
		if over < 0 {
			return slow, nil
		}
		if l := limits[over]; a.make == actions[len(actions)-1].make {
			return slow, fmt.Errorf("line %d of the gate: to slow %s down by %.3g %%, more than %d actions of a probe are needed: choose a function that takes less time, or a smaller --slowdown", l.Pos.Line, l.Region, 100*part, a.most)
		}
	}
	return s, nil
}

// dose measures by how much the actions slow each unit down, and changes their numbers to what is needed.
func (r *Runner) dose(ctx context.Context, s Side, slow *Side, limits []request.Limit, part float64) error {
	r.sample = nil
	all := make([][]float64, len(limits))
	for n := range trials {
		r.Note("measuring what an action costs, %d of %d", n+1, trials)
		pairs, err := r.Start(ctx, s, *slow, limits)
		if err != nil {
			return err
		}
		for i, p := range pairs {
			if !math.IsNaN(p.Ratio) { // each had blocks with enough calls
				all[i] = append(all[i], math.Expm1(p.Ratio))
			}
		}
	}
	for i, l := range limits {
		if len(all[i]) == 0 {
			return fmt.Errorf("line %d of the gate: no block of any start had enough calls of %s: try a longer --block, or a machine that does less beside", l.Pos.Line, l.Region)
		}
		in := &slow.injected[i]
		each := max(verdict.Median(all[i]), leastSeen) / float64(in.times)
		n := math.Round(part / each)
		if n < 1 {
			return fmt.Errorf("line %d of the gate: no action of a probe is so short as %.3g %% of %s: choose a function that takes longer", l.Pos.Line, 100*part, l.Region)
		}
		in.times = int(min(n, float64(in.action.most)))
	}
	return nil
}

// leastSeen is the least change that is taken for the effect of actions.
const leastSeen = 0.001

// inject returns the actions that slow a unit down, "" if it is not slowed.
func (r *Runner) inject(ctx context.Context, p *player, limit int) (string, error) {
	if limit >= len(p.injected) || p.injected[limit].times == 0 {
		return "", nil
	}
	in := p.injected[limit]
	made, err := r.omis(ctx, p, ": "+in.action.make)
	if err != nil {
		return "", err
	}
	return strings.Repeat(fmt.Sprintf(in.action.text, tokenOf(made, 1)), in.times), nil
}

// slowed puts actions behind the one that begins an interval, so that they are a part of it.
func slowed(timer omis.Token, actions string) string {
	return fmt.Sprintf("pa_timer_start([%s])%s", timer, actions)
}
