package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"mirador/cli/gate/request"
	"mirador/cli/gate/verdict"
	"mirador/omis"
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
	// All three take part in the first round, because a program may change its speed with its age.
	first, err := r.round(ctx, limits, players...)
	if err != nil {
		return nil, err
	}
	rounds, same := [][]Pair{pairsOf(first[0], first[1])}, pairsOf(first[0], first[2])
	for range r.Rounds - 1 {
		next, err := r.round(ctx, limits, players[:2]...)
		if err != nil {
			return nil, err
		}
		rounds = append(rounds, pairsOf(next[0], next[1]))
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
				blocks, err := r.block(ctx, p)
				if err != nil {
					return err
				}
				calls = max(calls, blocks[i].calls)
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

// round runs programs by turns, in a random order and then in the reverse order, such as ABBA, so
// that a trend of the machine affects all equally. It returns the statistic of each limit by program.
func (r *Runner) round(ctx context.Context, limits []request.Limit, players ...*player) ([][]float64, error) {
	order := rand.Perm(len(players))
	for _, n := range slices.Backward(slices.Clone(order)) {
		order = append(order, n)
	}
	durations := make([][][]float64, len(players))
	for n := range players {
		durations[n] = make([][]float64, len(limits))
	}
	for _, n := range order {
		blocks, err := r.block(ctx, players[n])
		if err != nil {
			return nil, err
		}
		for i, one := range blocks {
			switch {
			case spoils(one.wait, limits[i]):
				r.weather.dropped++
			case len(one.durations) >= leastCalls:
				durations[n][i] = append(durations[n][i], one.durations...)
			}
		}
	}
	values := make([][]float64, len(players))
	for n := range players {
		for i, l := range limits {
			values[n] = append(values[n], statistic(durations[n][i], l.Of))
		}
	}
	return values, nil
}

// pairsOf compares the values of two programs, limit by limit.
func pairsOf(base, head []float64) []Pair {
	pairs := make([]Pair, len(base))
	for i := range base {
		pairs[i] = Pair{Ratio: math.Log(head[i] / base[i]), Base: base[i] / 1e6, Head: head[i] / 1e6}
	}
	return pairs
}

// block is what a program did while it ran once.
type block struct {
	durations []float64 // nanoseconds
	wait      float64   // the part of the time in which the program waited for the processor
	calls     int       // all calls that were timed, with those that the trace had no room for
}

// block lets a program run for a while, and returns the calls that it has made.
func (r *Runner) block(ctx context.Context, p *player) ([]block, error) {
	before, begun := p.conditions(), time.Now()
	if err := syscall.Kill(-p.pid, syscall.SIGCONT); err != nil {
		return nil, p.early()
	}
	select {
	case <-time.After(r.Block):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := p.stop(ctx); err != nil {
		return nil, err
	}
	took := time.Since(begun)
	wait := r.weather.add(p.conditions().since(before), took)
	blocks := make([]block, len(p.traces))
	for i, trace := range p.traces {
		reply, err := r.omis(ctx, p, fmt.Sprintf(": pa_trace_read([%s],0)", trace))
		if err != nil {
			return nil, err
		}
		if blocks[i], err = readBlock(reply, took); err != nil {
			return nil, err
		}
		blocks[i].wait = wait
	}
	return blocks, nil
}

// readBlock returns the calls in a reply to pa_trace_read. It leaves out the first call of each
// thread and all that took longer than the block: they may have begun before the block, and then
// include the time in which the program was stopped.
func readBlock(reply omis.Reply, took time.Duration) (b block, err error) {
	const lost, records, width, thread, value = 0, 2, 5, 1, 4
	if len(reply) < 2 || len(reply[1]) == 0 || len(reply[1][0].Values) <= records {
		return b, errors.New("the reply to pa_trace_read has no records")
	}
	values := reply[1][0].Values
	b.calls = int(values[lost].N)
	seen := map[string]bool{}
	for record := range slices.Chunk(values[records].List, width) {
		if len(record) < width {
			break
		}
		b.calls++
		first := !seen[record[thread].Str]
		seen[record[thread].Str] = true
		if ns := record[value].N; !first && ns <= uint64(took) {
			b.durations = append(b.durations, float64(ns))
		}
	}
	return b, nil
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
