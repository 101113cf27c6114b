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

// turns is the number of turns in which a program runs during a block. The speed of a machine
// with other load changes within tens of milliseconds, so only what ran one right after the
// other is compared.
const turns = 10

// leastInTurn is the number of calls in a turn below which it is left out.
const leastInTurn = leastCalls / turns / 2

// block is what a program did in the turns of a round.
type block struct {
	turns []turn
	wait  float64  // the part of the time in which the program waited for the processor
	calls []int    // by limit: recorded and lost
	found [][]call // by limit
	clock time.Time
}

// turn is the time in which a program runs without a stop.
type turn struct{ begin, end time.Time }

// call is an execution of a unit that has ended.
type call struct {
	at     time.Duration // by the clock of the gateway
	thread string
	ns     uint64
}

// round lets programs run by turns, for a block each. In each cycle the order of the programs is
// random, so that a trend of the machine affects all equally.
func (r *Runner) round(ctx context.Context, players ...*player) ([]*block, error) {
	blocks, before := make([]*block, len(players)), make([]conditions, len(players))
	var order []int
	for range turns {
		order = append(order, rand.Perm(len(players))...)
	}
	for n, p := range players {
		blocks[n], before[n] = &block{clock: r.clock}, p.conditions()
	}
	for at, n := range order {
		follows := at > 0 && order[at-1] == n
		goesOn := at+1 < len(order) && order[at+1] == n
		t, err := r.turn(ctx, players[n], r.Block/turns, follows, goesOn)
		if err != nil {
			return nil, err
		}
		blocks[n].turns = append(blocks[n].turns, t)
	}
	for n, p := range players {
		if err := p.load.early(); err != nil {
			return nil, p.failed("%v", err)
		}
		took := time.Duration(0)
		for _, t := range blocks[n].turns {
			took += t.end.Sub(t.begin)
		}
		blocks[n].wait = r.weather.add(p.conditions().since(before[n]), took)
		if err := r.collect(ctx, p, blocks[n]); err != nil {
			return nil, err
		}
	}
	return blocks, nil
}

// turn lets a program run for a time. It runs already if the turn before was its own, and is not
// stopped if the next one is.
func (r *Runner) turn(ctx context.Context, p *player, long time.Duration, follows, goesOn bool) (t turn, err error) {
	t.begin = time.Now()
	if !follows {
		if err := syscall.Kill(-p.pid, syscall.SIGCONT); err != nil {
			return t, p.early()
		}
	}
	select {
	case <-time.After(long):
	case <-ctx.Done():
		return t, context.Cause(ctx)
	}
	if !goesOn {
		err = p.stop(ctx)
	}
	t.end = time.Now()
	return t, err
}

// collect reads the calls that a program has made.
func (r *Runner) collect(ctx context.Context, p *player, b *block) error {
	for _, trace := range p.traces {
		reply, err := r.omis(ctx, p, fmt.Sprintf(": pa_trace_read([%s],0)", trace))
		if err != nil {
			return err
		}
		found, lost, err := readCalls(reply)
		if err != nil {
			return err
		}
		b.found, b.calls = append(b.found, found), append(b.calls, len(found)+lost)
	}
	return nil
}

// readCalls returns the calls in a reply to pa_trace_read.
func readCalls(reply omis.Reply) (calls []call, lost int, err error) {
	const missing, records, width, thread, at, value = 0, 2, 5, 1, 2, 4
	if len(reply) < 2 || len(reply[1]) == 0 || len(reply[1][0].Values) <= records {
		return nil, 0, errors.New("the reply to pa_trace_read has no records")
	}
	values := reply[1][0].Values
	for record := range slices.Chunk(values[records].List, width) {
		if len(record) == width {
			calls = append(calls, call{time.Duration(record[at].Nanoseconds()), record[thread].Str, record[value].N})
		}
	}
	return calls, int(values[missing].N), nil
}

// durations returns how long the calls took that ended in each turn, in nanoseconds. It leaves out the first
// call of each thread in a turn and all that took longer than the turn: they may have begun before it, and
// last as long as the program was stopped.
func (b *block) durations(limit int) [][]float64 {
	all := make([][]float64, len(b.turns))
	seen := map[string]int{} // the last turn of each thread, from 1 on
	for _, c := range b.found[limit] {
		n := b.turnOf(b.clock.Add(c.at))
		first := seen[c.thread] != n+1
		seen[c.thread] = n + 1
		if !first && c.ns <= uint64(b.turns[n].end.Sub(b.turns[n].begin)) {
			all[n] = append(all[n], float64(c.ns))
		}
	}
	return all
}

// turnOf returns the turn in which a time lies: the last one that had begun. The clocks of the gate and of the
// gateway agree within a millisecond or so, and the other program runs between two turns.
func (b *block) turnOf(at time.Time) int {
	n := len(b.turns) - 1
	for n > 0 && at.Before(b.turns[n].begin) {
		n--
	}
	return n
}

// pairs compares the blocks of two programs, limit by limit: the ratio is the median of those of the turns.
func (r *Runner) pairs(limits []request.Limit, base, head *block) (pairs []Pair) {
	for i, l := range limits {
		if spoils(base.wait, l) || spoils(head.wait, l) {
			r.weather.dropped++
			pairs = append(pairs, Pair{Ratio: math.NaN()})
			continue
		}
		pairs = append(pairs, compared(base.durations(i), head.durations(i), l.Of))
	}
	return pairs
}

// compared compares the turns of two programs. A turn with few calls is left out.
func compared(base, head [][]float64, of request.Of) Pair {
	var ratios, from, to []float64
	calls := [2]int{}
	for n := range base {
		if min(len(base[n]), len(head[n])) < leastInTurn {
			continue
		}
		calls[0], calls[1] = calls[0]+len(base[n]), calls[1]+len(head[n])
		a, b := statistic(base[n], of), statistic(head[n], of)
		ratios, from, to = append(ratios, math.Log(b/a)), append(from, a), append(to, b)
	}
	if min(calls[0], calls[1]) < leastCalls {
		return Pair{Ratio: math.NaN()}
	}
	return Pair{Ratio: verdict.Median(ratios), Base: verdict.Median(from) / 1e6, Head: verdict.Median(to) / 1e6}
}

// synchronise finds out when the gateway's clock began, by records of a trace. The fastest of some
// attempts is the most exact.
func (r *Runner) synchronise(ctx context.Context, p *player, trace omis.Token) error {
	const attempts = 5
	fastest := time.Duration(math.MaxInt64)
	for range attempts {
		begun := time.Now()
		_, err := r.omis(ctx, p, fmt.Sprintf(": pa_trace_add([%s],0)", trace))
		took := time.Since(begun)
		if err != nil {
			return err
		}
		reply, err := r.omis(ctx, p, fmt.Sprintf(": pa_trace_read([%s],0)", trace))
		if err != nil {
			return err
		}
		calls, _, err := readCalls(reply)
		if err != nil {
			return err
		}
		if len(calls) == 1 && took < fastest {
			fastest, r.clock = took, begun.Add(took/2-calls[0].at)
		}
	}
	return nil
}
