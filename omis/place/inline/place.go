//go:build linux && amd64

package inline

import (
	"fmt"
	"slices"

	"mirador/omis"
	"mirador/omis/linux/proc"
)

// placed is an omis.Placed: one program at one address of one process.
type placed struct {
	target  *target
	patch   omis.Patched
	verdict omis.Verdict
	filter  int // -1: the program is for all threads
}

var _ omis.Placed = (*placed)(nil)

// Judge: see omis.Placer.
func (p *Placer) Judge(list []omis.Placing) ([]omis.Verdict, []error) {
	verdicts, errs := make([]omis.Verdict, len(list)), make([]error, len(list))
	addrs := make([]uint64, len(list))
	for i := range list {
		addrs[i] = list[i].Watch.Addr
		errs[i] = p.judge(&list[i])
	}
	if !slices.Contains(errs, nil) {
		return verdicts, errs
	}
	for i, err := range p.patcher.Survey(list[0].Watch.Proc, addrs) {
		if errs[i] == nil {
			errs[i] = err
		}
		if errs[i] == nil {
			verdicts[i] = verdict(list[i].Program, omis.Spot{})
		}
	}
	return verdicts, errs
}

// judge says why a program cannot be made, whatever stands at its address.
func (p *Placer) judge(l *omis.Placing) error {
	switch w := &l.Watch; {
	case w.Event != omis.EventReachedAddr:
		return &omis.Refusal{Why: "code of ours runs where threads reach an address, not at other events"}
	case len(w.Threads) > mostNamed:
		return &omis.Refusal{Why: fmt.Sprintf("code in a program tells %d threads apart, not %d", mostNamed, len(w.Threads))}
	}
	if slices.ContainsFunc(l.Program, func(op omis.Op) bool { return op.Do != omis.OpAdd }) {
		if err := p.clock.check(); err != nil {
			return &omis.Refusal{Why: err.Error()}
		}
	}
	if err := proc.Alive(l.Watch.Proc); err != nil {
		return err
	}
	return sameNumbers(l.Watch.Proc.PID)
}

// Costs of a hit, in nanoseconds, as measured on a Zen 4 virtual machine.
const (
	costToCount = 2.5
	costToTime  = 10
	costOfFlags = 2 // where they matter, and the red zone
)

// verdict says how a program runs.
func verdict(program omis.Program, spot omis.Spot) omis.Verdict {
	v := omis.Verdict{
		Name: Name, Where: "in the program, in code of ours; nobody is held",
		Why:  "its actions only count and measure time, and there is room for a jump",
		Cost: costToCount, Kind: "inside",
	}
	for _, op := range program {
		if op.Do != omis.OpAdd {
			v.Cost = costToTime
		}
	}
	switch {
	case spot.Entry:
		v.Kind = "entry"
	case spot.Return:
		v.Kind = "return"
	default:
		v.Cost += costOfFlags
	}
	return v
}

// Place: see omis.Placer.
func (p *Placer) Place(list []omis.Placing) ([]omis.Placed, []error) {
	all, errs := make([]omis.Placed, len(list)), make([]error, len(list))
	if len(list) == 0 {
		return all, errs
	}
	t, err := p.enter(list[0].Watch.Proc)
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return all, errs
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.leave()
	var made []*placed
	var patches []omis.Patch
	var from []int // indices in the list
	for i := range list {
		pl, patch, err := t.prepare(&list[i])
		if err != nil {
			errs[i] = err
			continue
		}
		made, patches, from = append(made, pl), append(patches, patch), append(from, i)
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

// prepare makes ready what a program needs. The caller holds mu.
func (t *target) prepare(l *omis.Placing) (*placed, omis.Patch, error) {
	pl := &placed{target: t, filter: -1}
	if err := t.placer.judge(l); err != nil {
		return nil, omis.Patch{}, err
	}
	m := &compiler{
		shape: t.memory.shape, tid: t.ground.TID(), base: t.memory.base, named: len(l.Watch.Threads),
	}
	for _, op := range l.Program {
		s := op.Store.(*store)
		if s.target != t {
			return nil, omis.Patch{}, &omis.Refusal{Why: "the process executes another program by now"}
		}
		c, err := s.cellFor(op)
		if err != nil {
			return nil, omis.Patch{}, &omis.Refusal{Why: err.Error()}
		}
		m.steps = append(m.steps, step{
			do: op.Do, value: op.Value, row: t.memory.distance(c), open: int32(c.open()),
			lost: t.memory.base + uint64(entryAt(c.entry)+entryLost),
		})
	}
	if m.named > 0 {
		if err := t.name(pl, l.Watch.Threads); err != nil {
			return nil, omis.Patch{}, err
		}
		m.filter = m.base + filtersAt + uint64(pl.filter*filterSize)
	}
	t.users++
	program := slices.Clone(l.Program)
	return pl, omis.Patch{Addr: l.Watch.Addr, Make: func(spot omis.Spot) ([]byte, error) {
		pl.verdict = verdict(program, spot)
		return m.bytes(spot)
	}}, nil
}

// name has a program know the threads that it is for.
func (t *target) name(pl *placed, tids []int) error {
	var f filter
	for _, tid := range tids {
		started, err := proc.ThreadStart(t.proc.PID, tid)
		if err != nil {
			return omis.Errorf(omis.UnknownObject, "thread %d of process %d has ended", tid, t.proc.PID)
		}
		f.threads = append(f.threads, thread{tid, started})
	}
	var err error
	if f.number, err = t.memory.filters.take(); err != nil {
		return &omis.Refusal{Why: err.Error()}
	}
	for i, th := range f.threads {
		t.memory.filterWord(f.number, i).Store(uint32(th.tid))
	}
	t.filters = append(t.filters, f)
	pl.filter = f.number
	return nil
}

// abandon gives back what a program needed. The caller holds mu.
func (t *target) abandon(pl *placed) {
	if pl.filter >= 0 {
		t.filters = slices.DeleteFunc(t.filters, func(f filter) bool { return f.number == pl.filter })
		t.memory.filters.give(pl.filter)
	}
	_ = t.leave() // somebody else has the target still
}

// Remove: see omis.Placer.
func (p *Placer) Remove(list []omis.Placed) error {
	if len(list) == 0 {
		return nil
	}
	t := list[0].(*placed).target
	t.mu.Lock()
	defer t.mu.Unlock()
	patches := make([]omis.Patched, len(list))
	for i, pl := range list {
		patches[i] = pl.(*placed).patch
	}
	var err error
	if !t.ground.Gone() {
		err = p.patcher.Unpatch(t.proc, patches)
	}
	t.users++ // not to be the last of them
	for _, pl := range list {
		t.abandon(pl.(*placed))
	}
	_ = t.leave()
	return err
}

// Verdict: see omis.Placed.
func (pl *placed) Verdict() omis.Verdict { return pl.verdict }

// Stands: see omis.Placed.
func (pl *placed) Stands() bool { return !pl.target.ground.Gone() }

// Covers: see omis.Placed.
func (pl *placed) Covers(addr uint64) bool { return pl.Stands() && pl.patch.Covers(addr) }

// SetActive: see omis.Placed.
func (pl *placed) SetActive(active bool) {
	_ = pl.patch.SetActive(active) // it fails where the process has ended
}
