package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"mirador/cli/gate/request"
	"mirador/cli/gate/verdict"
)

// Pair is what one start of both programs has measured for a limit.
type Pair struct {
	Ratio      float64 // the logarithm of head/base: the median of the rounds
	Bias       float64 // the same for base against another process of it
	Base, Head float64 // in the unit of the limit
}

const (
	// leastCalls is the number of calls in a block below which its quantiles are noise.
	leastCalls = 200
	// enough is the number of calls in a block that need to be recorded. If a program makes N times as
	// many, one call in N is timed.
	enough = 1500
	// longestBlock limits how long a program that makes few calls runs in one turn.
	longestBlock = 2 * time.Second
)

// Start starts both programs, and base once more, measures them by turns, and ends them. The
// copy of base shows whether this machine prefers one of two equal processes.
func (r *Runner) Start(ctx context.Context, base, head Side, limits []request.Limit) (pairs []Pair, err error) {
	if r.sample == nil {
		r.sample = make([]int, len(limits))
	}
	if err := r.choose(ctx); err != nil {
		return nil, err
	}
	if r.sample[0] == 0 {
		if err := r.pilot(ctx, base, head, limits); err != nil {
			return nil, err
		}
	}
	players, err := r.enterAll(ctx, []Side{base, head, base}, limits)
	defer func() { err = errors.Join(err, r.leave(players)) }()
	if err != nil {
		return nil, err
	}
	if err := r.level(ctx, players); err != nil {
		return nil, err
	}
	// All three take part in the first round, because a program may change its speed with its age.
	var rounds [][]Pair
	var same []Pair
	for n := range r.Rounds {
		some := players[:2]
		if n == 0 {
			some = players
		}
		blocks, err := r.round(ctx, some...)
		if err != nil {
			return nil, err
		}
		pairs := r.pairs(limits, blocks[0], blocks[1])
		if n == 0 {
			same = r.pairs(limits, blocks[0], blocks[2])
		}
		if err := r.remember(ctx, limits, pairs, players, blocks); err != nil {
			return nil, err
		}
		rounds = append(rounds, pairs)
	}
	for i := range limits {
		pairs = append(pairs, joined(rounds, i, same[i].Ratio))
	}
	return pairs, nil
}

func (r *Runner) enterAll(ctx context.Context, sides []Side, limits []request.Limit) (players []*player, err error) {
	for _, s := range sides {
		p, err := r.enter(ctx, s, limits)
		players = append(players, p)
		if err != nil {
			return players, err
		}
	}
	return players, nil
}

// level lets programs run until each has run as long as the others: many become slower or faster with
// their age.
func (r *Runner) level(ctx context.Context, players []*player) error {
	oldest := time.Duration(0)
	for _, p := range players {
		oldest = max(oldest, p.conditions().ran)
	}
	for _, p := range players {
		missing := oldest - p.conditions().ran
		end := time.Now().Add(min(2*missing, longestBlock)) // a server may wait
		for missing > time.Millisecond && time.Now().Before(end) {
			if _, err := r.turn(ctx, p, missing, false, false); err != nil {
				return err
			}
			missing = oldest - p.conditions().ran
		}
	}
	return nil
}

// joined returns the medians of the rounds in which both programs made enough calls, and ran without
// disturbance. A start has no ratio if less than half of its rounds are left.
func joined(rounds [][]Pair, i int, bias float64) Pair {
	var ratios, base, head []float64
	for _, round := range rounds {
		if p := round[i]; !math.IsNaN(p.Ratio) {
			ratios, base, head = append(ratios, p.Ratio), append(base, p.Base), append(head, p.Head)
		}
	}
	if 2*len(ratios) < len(rounds) {
		ratios = nil
	}
	return Pair{verdict.Median(ratios), bias, verdict.Median(base), verdict.Median(head)}
}

// pilot finds out how often the programs call the units, and chooses how many calls to time and how
// long a block is.
func (r *Runner) pilot(ctx context.Context, base, head Side, limits []request.Limit) (err error) {
	players, err := r.enterAll(ctx, []Side{base, head}, limits)
	defer func() { err = errors.Join(err, r.leave(players)) }()
	if err != nil {
		return err
	}
	for i, l := range limits {
		fewest := math.MaxInt
		for s, p := range players {
			calls := 0
			for range 3 { // the first block may be a start
				blocks, err := r.round(ctx, p)
				if err != nil {
					return err
				}
				calls = max(calls, blocks[0].calls[i])
			}
			if needed := float64(r.Block) * 1.5 * leastCalls / float64(calls); calls < 3*leastCalls/2 {
				if calls == 0 || time.Duration(needed) > longestBlock {
					return fmt.Errorf("line %d of the gate: %s executes %s %d times in %v; to compare times, at least %d executions in %v are needed", l.Pos.Line, []string{"base", "head"}[s], l.Region, calls, r.Block, leastCalls, longestBlock)
				}
				r.Block = time.Duration(needed)
			}
			fewest = min(fewest, calls)
		}
		r.sample[i] = max(fewest/enough, 1)
	}
	return nil
}

// statistic returns a percentile, or the mean of what does not exceed the 99th percentile. It is not a number
// if there are no durations.
func statistic(durations []float64, of request.Of) float64 {
	if len(durations) == 0 {
		return math.NaN()
	}
	slices.Sort(durations)
	if !of.Mean {
		return durations[min(int(float64(len(durations))*of.Percent/100), len(durations)-1)]
	}
	sum, n := 0.0, max(len(durations)*99/100, 1)
	for _, d := range durations[:n] {
		sum += d
	}
	return sum / float64(n)
}
