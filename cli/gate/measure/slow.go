package measure

import (
	"context"
	"fmt"
	"math"
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
	slow := s
	slow.injected = make([]injection, len(limits))
	for _, a := range actions {
		costs, medians, err := r.costs(ctx, s, limits, a)
		if err != nil {
			return slow, err
		}
		left := ""
		for i, l := range limits {
			if slow.injected[i].times > 0 {
				continue
			}
			n := math.Round(part * medians[i] / costs[i])
			switch {
			case n >= 1 && n <= float64(a.most):
				slow.injected[i] = injection{a, int(n)}
			case n >= 1:
				left = fmt.Sprintf("line %d of the gate: %s takes %.3g ms; to slow it down by %.3g %%, more than %d actions of a probe are needed: choose a function that takes less time, or a smaller --slowdown", l.Pos.Line, l.Region, medians[i], 100*part, a.most)
			default:
				return slow, fmt.Errorf("line %d of the gate: %s takes %.3g ms; no action of a probe is so short as %.3g %% of it: choose a function that takes longer", l.Pos.Line, l.Region, medians[i], 100*part)
			}
		}
		if left == "" {
			return slow, nil
		}
		if a.make == actions[len(actions)-1].make {
			return slow, fmt.Errorf("%s", left)
		}
	}
	return slow, nil
}

// costs measures what an action costs in each unit, and the median durations without it.
func (r *Runner) costs(ctx context.Context, s Side, limits []request.Limit, a action) (costs, medians []float64, err error) {
	with := s
	for range limits {
		with.injected = append(with.injected, injection{a, a.tried})
	}
	all, base := make([][]float64, len(limits)), make([][]float64, len(limits))
	for n := range trials {
		r.Note("measuring what an action costs, %d of %d", n+1, trials)
		pairs, err := r.Start(ctx, s, with, limits)
		if err != nil {
			return nil, nil, err
		}
		for i, p := range pairs {
			if cost := (p.Head - p.Base) / float64(a.tried); !math.IsNaN(cost) { // each had blocks with enough calls
				all[i], base[i] = append(all[i], cost), append(base[i], p.Base)
			}
		}
	}
	for i, l := range limits {
		if len(all[i]) == 0 {
			return nil, nil, fmt.Errorf("line %d of the gate: no block of any start had enough calls of %s: try a longer --block, or a machine that does less beside", l.Pos.Line, l.Region)
		}
		costs, medians = append(costs, verdict.Median(all[i])), append(medians, verdict.Median(base[i]))
	}
	return costs, medians, nil
}

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
