//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/node"
	"mirador/omis/program"
)

// Name is the name of this placement.
const Name = "kernel"

// placed is an program.Placed: what happens at one address. Placer.mu guards it.
type placed struct {
	placer    *Placer
	target    *target
	site      site
	shape     *shape
	spot      unit
	bunch     *bunch // it is set by
	former    uint32 // the link that the bunch takes over from
	active    bool
	lasts     bool   // it outlives the monitor
	kindAdded string // see kindAdded
	err       error  // why it could not be placed
}

var _ program.Placed = (*placed)(nil)

// mostNamed is how many threads a program tells apart; they are compared one by one.
const mostNamed = 16

// Name: see program.Placer.
func (*Placer) Name() string { return Name }

// Judge: see program.Placer.
func (p *Placer) Judge(list []program.Placing) ([]program.Verdict, []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	verdicts, errs := make([]program.Verdict, len(list)), make([]error, len(list))
	sites, errs := p.judge(list, errs)
	for i := range list {
		if isEvent(list[i].Watch.Event) {
			var at point
			if at, errs[i] = p.judgeEvent(&list[i]); errs[i] == nil {
				verdicts[i] = at.verdict()
			}
		} else if errs[i] == nil {
			verdicts[i] = p.mortally(sites[i].verdict(kindAdded(list[i].Program)))
		}
	}
	return verdicts, errs
}

// judge finds places for programs that are to run at addresses. The caller holds mu.
func (p *Placer) judge(list []program.Placing, errs []error) ([]site, []error) {
	sites := make([]site, len(list))
	if len(list) == 0 {
		return sites, errs
	}
	sv, err := p.survey(list[0].Watch.Proc)
	if err == nil {
		defer sv.close()
		sv.nops = p.nops
		sv.check, err = p.boundaries(list[0].Watch.Proc)
	}
	for i := range list {
		if isEvent(list[i].Watch.Event) {
			continue
		}
		if errs[i] = err; err != nil {
			continue
		}
		if errs[i] = p.suits(&list[i]); errs[i] == nil {
			sites[i], errs[i] = sv.place(list[i].Watch.Addr)
		}
		if errs[i] == nil && times(list[i].Program) && sv.runtime(list[i].Watch.Addr) != nil {
			errs[i] = &program.Refusal{Why: "a goroutine may leave the function on another thread, and intervals are of threads here"}
		}
	}
	return sites, errs
}

// boundaries makes the check of the addresses of a process.
func (p *Placer) boundaries(id omis.ProcID) (func(uint64) error, error) {
	if p.bounds == nil {
		return func(uint64) error { return nil }, nil
	}
	return p.bounds(id)
}

// suits says why a program is none for the kernel.
func (p *Placer) suits(pl *program.Placing) error {
	if pl.Watch.Event != node.EventReachedAddr {
		return &program.Refusal{Why: "the kernel runs programs where threads reach an address and at events of its own, not at others"}
	}
	named := len(pl.Watch.Threads)
	if named > mostNamed {
		return &program.Refusal{Why: fmt.Sprintf("a program in the kernel tells %d threads apart, not %d", mostNamed, named)}
	}
	if most := mostUnits - unitsOfHead - named; len(pl.Program) > most {
		return &program.Refusal{Why: fmt.Sprintf("a program in the kernel has %d steps at most, not %d", most, len(pl.Program))}
	}
	if err := canLoad(&pl.Watch, pl.Program); err != nil {
		return err
	}
	return p.layout.cpu.suits(pl.Watch.Event, pl.Program)
}

// survey begins to look at a process. The caller holds mu.
func (p *Placer) survey(id omis.ProcID) (*survey, error) {
	if err := p.ready(); err != nil {
		return nil, err
	}
	if err := proc.Alive(id); err != nil {
		return nil, err
	}
	if err := p.layout.reaches(id.PID); err != nil {
		return nil, &program.Refusal{Why: err.Error()}
	}
	t := p.targets[id]
	if t != nil && t.isGone() {
		t = nil
	}
	return newSurvey(id.PID, p.codes, t)
}

// Place: see program.Placer.
func (p *Placer) Place(list []program.Placing) ([]program.Placed, []error) {
	p.planting.Lock()
	defer p.planting.Unlock()
	stand, all, errs := p.prepare(list)
	var fresh []*placed
	for _, pl := range all {
		if pl != nil && pl.bunch == nil {
			fresh = append(fresh, pl)
		}
	}
	p.attach(fresh)
	for i, pl := range all {
		switch {
		case pl == nil:
		case pl.err != nil:
			errs[i] = pl.err
			pl.free()
		default:
			stand[i] = pl
		}
	}
	return stand, errs
}

// prepare does all but set uprobes.
func (p *Placer) prepare(list []program.Placing) ([]program.Placed, []*placed, []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	listeners, errs := p.listen(list)
	all := make([]*placed, len(list))
	sites, errs := p.judge(list, errs)
	fresh := 0
	for i := range list {
		if errs[i] != nil || listeners[i] != nil {
			continue
		}
		if all[i], errs[i] = p.prepareOne(&list[i], sites[i]); errs[i] == nil {
			fresh++
		}
	}
	for _, q := range p.pools {
		if q != nil {
			_ = q.provide(q.form.spare + fresh) // rows that find no room are counted
		}
	}
	return listeners, all, errs
}

func (p *Placer) prepareOne(what *program.Placing, s site) (*placed, error) {
	w, steps := &what.Watch, what.Program
	named, err := named(w.Proc.PID, w.Threads)
	if err != nil {
		return nil, err
	}
	if err := p.openTrails(steps); err != nil {
		return nil, err
	}
	if err := claim(steps, atAddresses); err != nil {
		return nil, err
	}
	if pl := p.standing(what, named); pl != nil {
		pl.kindAdded = kindAdded(steps)
		return pl, nil
	}
	shape, err := p.load(shapeOf(steps, named))
	if err != nil {
		return nil, err
	}
	t, err := p.enter(w.Proc)
	if err != nil {
		return nil, &program.Refusal{Why: err.Error()}
	}
	pl := &placed{placer: p, target: t, site: s, shape: shape, lasts: p.estate != nil && lasts(steps), kindAdded: kindAdded(steps)}
	if pl.spot, err = p.slab.take(pl.units()); err != nil {
		t.leave()
		return nil, &program.Refusal{Why: err.Error()}
	}
	p.slab.writeSpot(pl.spot, t, &s, steps, named)
	t.stand(&pl.site)
	return pl, nil
}

func (pl *placed) units() int { return unitsOfSpot(len(pl.shape.steps), pl.shape.threads) }

// named says for good which threads are meant.
func named(pid int, tids []int) ([]thread, error) {
	var list []thread
	for _, tid := range tids {
		ticks, err := proc.ThreadStart(pid, tid)
		if err != nil {
			return nil, omis.Errorf(omis.UnknownObject, "thread %d of process %d has ended", tid, pid)
		}
		list = append(list, thread{tid, ticks})
	}
	return list, nil
}

// load loads the program of a shape, once. The caller holds mu.
func (p *Placer) load(s *shape) (*shape, error) {
	if known := p.shapes[s.String()]; known != nil {
		return known, nil
	}
	a := &assembler{layout: &p.layout, slab: p.slab, pools: &p.pools}
	var err error
	s.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "mirador", Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti,
		Instructions: a.program(s), License: "GPL", // tasks are shown to programs under the GPL alone
	})
	if err != nil {
		return nil, &program.Refusal{Why: fmt.Sprintf("the kernel refuses the program: %v", err)}
	}
	p.shapes[s.String()] = s
	return s, nil
}

// attach sets uprobes. The kernel sets one only where it thinks that code is; so it is
// looked after. The caller holds planting.
func (p *Placer) attach(list []*placed) {
	if len(list) == 0 {
		return
	}
	p.mu.Lock()
	bunches := p.bunches(list)
	p.mu.Unlock()
	for _, b := range bunches {
		for _, part := range b.attach() {
			part.counts(0)
		}
	}
	after := pager{read: func(b []byte, addr uint64) (int, error) { return proc.ReadMemory(list[0].target.proc.PID, addr, b) }}
	var missing []*placed
	for _, pl := range list {
		var now [1]byte
		if pl.err == nil && (after.at(now[:], pl.site.addr) == 0 || now[0] == pl.site.code[0]) {
			pl.err = &program.Refusal{Why: fmt.Sprintf("the kernel did not set the uprobe at %#x", pl.site.addr)}
			missing = append(missing, pl)
		}
	}
	if err := remove(missing); err != nil {
		missing[0].err = errors.Join(missing[0].err, err)
	}
}

// Remove: see program.Placer.
func (p *Placer) Remove(list []program.Placed) error {
	p.planting.Lock()
	defer p.planting.Unlock()
	var all []*placed
	var listeners []*listener
	for _, one := range list {
		one.SetActive(false)
		switch one := one.(type) {
		case *placed:
			all = append(all, one)
		case *listener:
			listeners = append(listeners, one)
		}
	}
	err := remove(all)
	for _, pl := range all {
		pl.free()
	}
	if len(listeners) > 0 {
		err = errors.Join(err, p.removeListeners(listeners))
	}
	return err
}

// Hide puts the original bytes where uprobes stand into memory that was read.
func (p *Placer) Hide(id omis.ProcID, addr uint64, memory []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.targets[id]
	if t == nil || t.isGone() {
		return
	}
	if len(t.sites) <= len(memory) {
		for at, u := range t.sites {
			u.hide(at, addr, memory)
		}
		return
	}
	for at := addr - min(addr, longest); at < addr+uint64(len(memory)); at++ {
		t.sites[at].hide(at, addr, memory)
	}
}

// longest is the length of the longest instruction.
const longest = 15

// hide puts the original bytes in. Of a nop the kernel replaces all bytes.
func (u uprobes) hide(at, addr uint64, memory []byte) {
	for i, original := range u.code {
		if b := at + uint64(i); b >= addr && b-addr < uint64(len(memory)) {
			memory[b-addr] = original
		}
	}
}

func (pl *placed) Verdict() program.Verdict { return pl.placer.mortally(pl.site.verdict(pl.kindAdded)) }

func (pl *placed) Stands() bool { return !pl.target.isGone() }

// Lingers: see program.Placed. The kernel waits for those who run a program.
func (pl *placed) Lingers() bool { return false }

// Covers: see program.Placed.
func (pl *placed) Covers(addr uint64) bool { return addr == pl.site.addr || addr == pl.site.asked }

func (pl *placed) SetActive(active bool) {
	pl.placer.mu.Lock()
	defer pl.placer.mu.Unlock()
	pl.active = active
	pl.tell()
}

// tell tells the program of the kernel whose hits count. The caller holds Placer.mu.
func (pl *placed) tell() {
	var v uint64
	if pl.active {
		v = uint64(pl.former)<<32 | uint64(pl.bunch.serial)
	}
	pl.placer.slab.word(pl.spot, spotLink/8).Store(v)
}

// free gives everything back.
func (pl *placed) free() {
	pl.placer.mu.Lock()
	defer pl.placer.mu.Unlock()
	pl.target.fall(&pl.site)
	pl.placer.slab.give(pl.spot, pl.units())
	pl.target.leave()
}
