//go:build linux && amd64

package inline

import (
	"errors"
	"fmt"
	"slices"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/node"
	"mirador/omis/program"
)

// placed is a program.Placed: one program at one address of one process.
type placed struct {
	target  *target
	patch   node.Patched
	verdict program.Verdict
	said    said
	former  bool // a former monitor has placed it
}

var _ program.Placed = (*placed)(nil)

// Judge: see program.Placer.
func (p *Placer) Judge(list []program.Placing) ([]program.Verdict, []error) {
	verdicts := make([]program.Verdict, len(list))
	errs := p.judge(list)
	var at []int
	var addrs []uint64
	for i, err := range errs {
		if err == nil {
			at, addrs = append(at, i), append(addrs, list[i].Watch.Addr)
		}
	}
	if len(addrs) == 0 {
		return verdicts, errs
	}
	codes := p.goCodes(list, errs)
	notes, refused := p.patcher.Survey(list[0].Watch.Proc, addrs)
	for k, err := range refused {
		if errs[at[k]] == nil {
			errs[at[k]] = err
		}
		if errs[at[k]] == nil {
			verdicts[at[k]] = noted(verdict(list[at[k]].Program, 0, codes[at[k]].In), notes[k])
		}
	}
	return verdicts, errs
}

// judge returns why programs cannot run inline, whatever their addresses.
func (p *Placer) judge(list []program.Placing) []error {
	errs := make([]error, len(list))
	if len(list) == 0 {
		return errs
	}
	id := list[0].Watch.Proc
	all := proc.Alive(id)
	if all == nil {
		all = sameNumbers(id.PID)
	}
	_, untimed := p.now()
	for i := range list {
		l := &list[i]
		switch {
		case all != nil:
			errs[i] = all
		case l.Watch.Event != node.EventReachedAddr:
			errs[i] = &program.Refusal{Why: "code of ours runs where threads reach an address, not at other events"}
		case len(l.Watch.Threads) > mostNamed:
			errs[i] = &program.Refusal{Why: fmt.Sprintf("code in a program tells %d threads apart, not %d", mostNamed, len(l.Watch.Threads))}
		case takesCPU(l.Program):
			errs[i] = &program.Refusal{Why: "code in a program has no clock of the thread's CPU time but a system call, which it does not make"}
		case asksKernel(l.Program):
			errs[i] = &program.Refusal{Why: "code in a program reads no clock but the time: neither what another object has counted, nor what the kernel counts for the thread"}
		case canLoad(l.Program) != nil:
			errs[i] = canLoad(l.Program)
		case untimed != nil && (times(l.Program) || l.Program.Traces()):
			errs[i] = program.Refuse(untimed)
		}
	}
	return errs
}

// Costs of a hit in nanoseconds, measured on a virtual machine with a Zen 4 processor.
const (
	costToCount     = 2.5
	costToSample    = 4 // without reading the clock
	costToTime      = 10
	costToTrace     = 12
	costToSpread    = 3
	costOfOrder     = 15
	costOfGoroutine = 2 // to find its row
	costOfFlags     = 2 // of saving the flags and leaving the red zone, where that is necessary
)

// times reports whether a program measures time.
func times(p program.Program) bool {
	return slices.ContainsFunc(p, program.Op.Times)
}

// takesCPU reports whether a program measures CPU time.
func takesCPU(p program.Program) bool {
	return slices.ContainsFunc(p, func(op program.Op) bool { return op.Times() && op.Clock == program.ClockCPU })
}

// asksKernel reports whether a program reads a clock that only the kernel has, or the value
// of another cell.
func asksKernel(p program.Program) bool {
	return slices.ContainsFunc(p, func(op program.Op) bool { return op.Times() && !op.Clock.IsTime() })
}

// isOrdered reports whether a program uses the ordered clock.
func isOrdered(p program.Program) bool {
	return slices.ContainsFunc(p, func(op program.Op) bool { return op.Times() && op.Clock == program.ClockOrdered })
}

// verdict says how a program runs at a kind of place.
func verdict(steps program.Program, kind int, inGo bool) program.Verdict {
	v := program.Verdict{
		Name: Name, Where: "in the program, in code of ours; no thread is held",
		Why:  "its actions only count and measure time, and there is room for a jump",
		Cost: costToCount, Kind: kinds[kind],
	}
	if times(steps) {
		v.Cost = costToTime
		if inGo {
			v.Cost += costOfGoroutine
		}
	}
	if steps.Traces() {
		v.Cost, v.Kind = v.Cost+costToTrace, v.Kind+", traced"
		if times(steps) {
			v.Kind += ", timed" // the costs of both together are not calibrated
		}
	}
	if kind == 0 {
		v.Cost += costOfFlags
	}
	if isOrdered(steps) {
		v.Kind += ", ordered"
		v.Cost += costOfOrder
	}
	if n := sampled(steps); n > 1 {
		v.Kind, v.OneIn = v.Kind+", sampled", n
		v.Cost = costToSample + v.Cost/float64(n)
	}
	if steps.FillsHistogram() {
		v.Cost, v.Kind = v.Cost+costToSpread/float64(max(v.OneIn, 1)), v.Kind+", histogram"
	}
	return v
}

// Place: see program.Placer.
func (p *Placer) Place(list []program.Placing) ([]program.Placed, []error) {
	all, errs := make([]program.Placed, len(list)), p.judge(list)
	codes := p.goCodes(list, errs)
	if !slices.Contains(errs, nil) {
		return all, errs
	}
	t, err := p.enter(list[0].Watch.Proc)
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return all, errs
	}
	var broken error
	defer func() {
		for i := range errs {
			if broken != nil {
				all[i], errs[i] = nil, broken
			}
		}
	}()
	defer t.release(t.hold(), &broken)
	defer t.leave()
	var made []*placed
	var patches []node.Patch
	var from []int // indices in the list
	for i := range list {
		if errs[i] != nil {
			continue
		}
		pl, patch, err := t.prepare(&list[i], codes[i])
		switch {
		case err != nil:
			errs[i] = err
		case pl.former:
			all[i] = pl
		default:
			made, patches, from = append(made, pl), append(patches, patch), append(from, i)
		}
	}
	if len(patches) == 0 {
		return all, errs
	}
	stands, failed := p.patcher.Patch(t.proc, patches)
	for k, i := range from {
		if errs[i] = failed[k]; errs[i] != nil {
			t.abandon(made[k])
			continue
		}
		made[k].patch = stands[k]
		all[i] = made[k]
	}
	return all, errs
}

// prepare makes what a program needs, or adopts the program that a former monitor has left. The caller
// holds mu.
func (t *target) prepare(l *program.Placing, code node.GoCode) (*placed, node.Patch, error) {
	m := &compiler{shape: t.memory.shape, tid: t.ground.TID(), base: t.memory.base, named: len(l.Watch.Threads), when: l.Watch.When, ordered: isOrdered(l.Program), late: sampled(l.Program) > 1, code: code}
	var entries []int
	for i, op := range l.Program {
		s := op.Store.(*store)
		if s.target != t {
			return nil, node.Patch{}, &program.Refusal{Why: "the process executes another program by now"}
		}
		if op.Whole && code.In {
			return nil, node.Patch{}, &program.Refusal{Why: "in functions of Go, code in a program pairs beginnings with ends by their place on the stack only"}
		}
		c, err := s.cellFor(op)
		if err != nil {
			return nil, node.Patch{}, program.Refuse(err)
		}
		one := step{
			do: op.Do, value: op.Value, load: op.Load, row: t.memory.distance(c), open: int32(c.open()), level: int32(c.kind.depth()), oneIn: op.OneIn, whole: op.Whole, spread: c.kind == cellSpreads,
			entry: c.entry, goroutine: code.In && op.Times(), reset: t.memory.base + uint64(entryAt(c.entry)+entryReset),
			lost: t.memory.base + uint64(entryAt(c.entry)+entryLost), tells: l.Program.Tells(i),
		}
		if op.Do == program.OpTrace {
			s.notes.enter(op, &one)
			s.notes.ticks(op, i > 0 && l.Program[i-1].Times() && l.Program[i-1].Clock.IsElapsed())
		}
		if op.Load.From == program.FromStack && code.In {
			m.steps, entries = append(m.steps, one.goroutineFirst()), append(entries, c.entry)
		}
		m.steps, entries = append(m.steps, one), append(entries, c.entry)
	}
	if times(l.Program) || l.Program.Traces() {
		r, err := t.timing()
		if err != nil {
			return nil, node.Patch{}, program.Refuse(err)
		}
		m.timing = r
	}
	threads, err := named(t.proc.PID, l.Watch.Threads)
	if err != nil {
		return nil, node.Patch{}, err
	}
	pl := &placed{target: t, said: said{addr: l.Watch.Addr, filter: -1, text: textOf(m, entries, threads)}}
	if former := t.claim(pl.said.addr, pl.said.text); former != nil {
		t.users++
		pl.said, pl.patch, pl.former = former.said, former.patch, true
		pl.verdict = verdict(l.Program, pl.said.kind, code.In)
		return pl, node.Patch{}, nil
	}
	if err := t.announce(pl, m, threads); err != nil {
		return nil, node.Patch{}, err
	}
	program := slices.Clone(l.Program)
	return pl, node.Patch{Addr: l.Watch.Addr, Reads: reads(program), Make: func(spot node.Spot) ([]byte, error) {
		pl.said.kind, pl.said.change = kindAt(spot), spot.Switch
		t.memory.sayWhere(&pl.said)
		pl.verdict = verdict(program, pl.said.kind, code.In)
		return m.bytes(spot)
	}}, nil
}

// announce writes the description of a program that is about to be installed.
func (t *target) announce(pl *placed, m *compiler, threads []thread) error {
	if len(threads) > 0 {
		number, err := t.memory.filters.take()
		if err != nil {
			return program.Refuse(err)
		}
		for i := range mostNamed {
			tid := 0
			if i < len(threads) {
				tid = threads[i].tid
			}
			t.memory.filterWord(number, i).Store(uint32(tid))
		}
		t.filters = append(t.filters, filter{number, threads})
		pl.said.filter, m.filter = number, m.base+filtersAt+uint64(number*filterSize)
	}
	if err := t.memory.say(&pl.said); err != nil {
		t.unfilter(pl.said.filter)
		return program.Refuse(err)
	}
	t.users++
	return nil
}

// named identifies threads beyond the reuse of their numbers.
func named(pid int, tids []int) ([]thread, error) {
	var list []thread
	for _, tid := range tids {
		started, err := proc.ThreadStart(pid, tid)
		if err != nil {
			return nil, omis.Errorf(omis.UnknownObject, "thread %d of process %d has ended", tid, pid)
		}
		list = append(list, thread{tid, started})
	}
	return list, nil
}

// unfilter frees a filter.
func (t *target) unfilter(number int) {
	if number < 0 {
		return
	}
	t.filters = slices.DeleteFunc(t.filters, func(f filter) bool { return f.number == number })
	t.memory.filters.give(number)
}

// abandon gives back what a program used. The caller holds mu.
func (t *target) abandon(pl *placed) {
	t.unfilter(pl.said.filter)
	t.memory.unsay(&pl.said)
	_ = t.leave() // others still use the target
}

// Remove: see program.Placer.
func (p *Placer) Remove(list []program.Placed) (err error) {
	if len(list) == 0 {
		return nil
	}
	t := list[0].(*placed).target
	defer t.release(t.hold(), &err)
	var patches []node.Patched
	for _, l := range list {
		patches = append(patches, l.(*placed).patch)
	}
	if t.ground.Gone() {
		patches = nil
	}
	err = t.takeAway(patches)
	t.users++ // keeps the target open
	for _, pl := range list {
		t.abandon(pl.(*placed))
	}
	return errors.Join(err, t.leave())
}

// Drain: see program.Drainer.
func (p *Placer) Drain(list []program.Placed) {
	patches := make(map[*target][]node.Patched)
	for _, l := range list {
		if pl := l.(*placed); pl.Lingers() {
			patches[pl.target] = append(patches[pl.target], pl.patch)
		}
	}
	for t, some := range patches {
		_ = p.patcher.Unpatch(t.proc, some) // programs that could not be drained still linger
	}
}

// Verdict: see program.Placed.
func (pl *placed) Verdict() program.Verdict {
	return noted(pl.verdict, pl.patch.Exclusive(), pl.patch.Misses())
}

// noted adds to a verdict what users of the place must know.
func noted(v program.Verdict, notes ...string) program.Verdict {
	for _, note := range notes {
		if note != "" {
			v.Why += "; " + note
		}
	}
	return v
}

// Stands: see program.Placed.
func (pl *placed) Stands() bool { return !pl.target.ground.Gone() }

// Covers: see program.Placed.
func (pl *placed) Covers(addr uint64) bool { return pl.Stands() && pl.patch.Covers(addr) }

// Lingers: see program.Placed.
func (pl *placed) Lingers() bool { return pl.Stands() && pl.patch.Lingers() }

// SetActive: see program.Placed.
func (pl *placed) SetActive(active bool) {
	_ = pl.patch.SetActive(active) // it fails if the process has ended
}
