//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/calls"
	"mirador/omis/host/proc"
	"mirador/omis/node"
	"mirador/omis/program"
)

// events runs programs at events of the kernel itself. Whoever calls it holds
// Placer.mu.
type events struct {
	placer      *Placer
	layout      *layout
	slab        *slab
	pools       *pools
	records     records
	interrupted *ebpf.Map
	enter, exit hook
	states      *ebpf.Map // of threads whose scheduling is looked out for
	roles       [roles]hook
	watched     map[omis.ProcID]*watched
}

// watched is a process in which such events are looked out for.
type watched struct {
	proc   omis.ProcID
	record record
	places map[point]slot // where programs stand
	all    []*listener    // in the order in which they came
}

// point is what is looked out for: the start or the end of a system call, or that a
// thread loses a processor, and the like.
type point struct {
	kind   node.EventKind
	number int // of the system call
}

// everyCall is the number of a point for all system calls.
const everyCall = -1

func (e *events) open(set maps, l *layout, s *slab, p *pools) (err error) {
	e.layout, e.slab, e.pools, e.watched = l, s, p, make(map[omis.ProcID]*watched)
	e.enter = hook{placer: e.placer, name: "enter", tracepoint: "sys_enter", root: e.onEnter}
	e.exit = hook{placer: e.placer, name: "exit", tracepoint: "sys_exit", root: e.onExit}
	if err := e.records.open(set); err != nil {
		return err
	}
	for r, tracepoint := range tracepointOf {
		e.roles[r] = hook{placer: e.placer, name: fmt.Sprint("role", r), tracepoint: tracepoint, root: e.rootOf(role(r))}
	}
	for _, h := range e.allHooks() {
		if err := h.open(set); err != nil {
			return err
		}
	}
	if e.states, err = newStates(set); err != nil {
		return err
	}
	e.interrupted, err = newInterrupted(set)
	return err
}

// CheckEvents tells why this monitor cannot place programs at the events of the kernel
// itself, system calls and scheduling; nil: it can.
func (p *Placer) CheckEvents() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ready(); err != nil {
		return err
	}
	return p.events.try()
}

// try attaches to each tracepoint for a moment.
func (e *events) try() error {
	hooks := []*hook{&e.enter, &e.exit}
	for r := range e.roles {
		hooks = append(hooks, &e.roles[r])
	}
	for _, h := range hooks {
		if err := h.enter(); err != nil {
			return err
		}
		if err := h.leave(); err != nil {
			return err
		}
	}
	return e.judgeScheduling()
}

// isEvent tells whether an event is one of the kernel's own.
func isEvent(kind node.EventKind) bool { return isCall(kind) || isScheduling(kind) }

func isCall(kind node.EventKind) bool {
	return kind == node.EventSysCallStarted || kind == node.EventSysCallEnded
}

// judgeEvent says whether a program can run at an event of the kernel.
func (p *Placer) judgeEvent(pl *program.Placing) (point, error) {
	w := &pl.Watch
	if err := p.ready(); err != nil {
		return point{}, err
	}
	if len(w.Threads) > mostNamed {
		return point{}, &program.Refusal{Why: fmt.Sprintf("a program in the kernel tells %d threads apart, not %d", mostNamed, len(w.Threads))}
	}
	if err := p.layout.cpu.suits(w.Event, pl.Program); err != nil {
		return point{}, err
	}
	if err := canLoad(w, pl.Program); err != nil {
		return point{}, err
	}
	if err := proc.Alive(w.Proc); err != nil {
		return point{}, err
	}
	if err := p.layout.reaches(w.Proc.PID); err != nil {
		return point{}, &program.Refusal{Why: err.Error()}
	}
	switch {
	case isScheduling(w.Event):
		return point{kind: w.Event}, p.events.judgeScheduling()
	case w.Name == "":
		return point{w.Event, everyCall}, nil
	}
	if _, err := p.layout.socketOf(w); err != nil {
		return point{}, err
	}
	name, _ := calls.Split(w.Name)
	call, ok := calls.ByName(name)
	if !ok {
		return point{}, omis.Errorf(omis.ParameterError, "there is no system call %s", w.Name)
	}
	return point{w.Event, call.Number}, nil
}

// listen places those programs of a list, all of one process, that are to run at events
// of the kernel.
func (p *Placer) listen(list []program.Placing) ([]program.Placed, []error) {
	all, errs := make([]program.Placed, len(list)), make([]error, len(list))
	var began []*listener
	for i := range list {
		if !isEvent(list[i].Watch.Event) {
			continue
		}
		l, err := p.newListener(list[i])
		if err != nil {
			errs[i] = err
			continue
		}
		all[i] = l
		if !slices.Contains(l.on.all, l) { // else a former monitor has begun with it
			began = append(began, l)
		}
	}
	err := p.events.begin(began)
	for i := range all {
		if err != nil && all[i] != nil {
			all[i], errs[i] = nil, err
		}
	}
	return all, errs
}

func (p *Placer) newListener(what program.Placing) (*listener, error) {
	w := what.Watch
	at, err := p.judgeEvent(&what)
	if err != nil {
		return nil, err
	}
	only, err := named(w.Proc.PID, w.Threads)
	if err != nil {
		return nil, err
	}
	if err := p.openTrails(what.Program); err != nil {
		return nil, err
	}
	if isScheduling(w.Event) {
		if err := claim(what.Program, atSwitches); err != nil {
			return nil, err
		}
	}
	_, socket := calls.Split(w.Name)
	if l := p.standingListener(&what, at, only, socket); l != nil {
		return l, nil
	}
	on, err := p.events.watch(w.Proc)
	if err != nil {
		return nil, err
	}
	l := &listener{placer: p, on: on, point: at, only: only, socket: socket, steps: what.Program}
	if l.active, err = p.slab.take(1); err != nil {
		p.events.unwatch(on)
		return nil, &program.Refusal{Why: err.Error()}
	}
	l.note()
	return l, nil
}

// watch gives a process a record, if it has none.
func (e *events) watch(id omis.ProcID) (*watched, error) {
	if w := e.watched[id]; w != nil {
		return w, nil
	}
	rec, err := e.records.take(id)
	if err != nil {
		return nil, err
	}
	w := &watched{proc: id, record: rec, places: make(map[point]slot)}
	e.watched[id] = w
	w.note(e.placer)
	return w, nil
}

// unwatch takes the record of a process away in which nothing is looked out for.
func (e *events) unwatch(w *watched) {
	if len(w.all) > 0 || e.watched[w.proc] != w {
		return
	}
	delete(e.watched, w.proc)
	e.records.hide(w.proc)
	awaitPrograms()
	w.forget(e.placer)
	e.records.give(w.record)
}

// awaitPrograms returns when no program runs any more that has seen the tables as they
// were before. They run without being preempted, so what the kernel calls a grace
// period is enough, and membarrier(2) waits for one.
func awaitPrograms() {
	const global = 1
	// It fails where processors are left to real-time programs alone; then a program may
	// see for a moment what was.
	_, _, _ = unix.Syscall(unix.SYS_MEMBARRIER, global, 0, 0)
}

// begin has listeners of one process listen: all of them, or none.
func (e *events) begin(list []*listener) error {
	if len(list) == 0 {
		return nil
	}
	on := list[0].on
	on.all = append(on.all, list...)
	var err error
	for i, l := range list {
		if err = e.attach(l); err != nil {
			for _, l := range list[:i] {
				err = errors.Join(err, e.detach(l))
			}
			break
		}
	}
	if err == nil {
		if err = e.place(on, list); err == nil {
			e.noteWaiting(on, list)
			return nil
		}
		for _, l := range list {
			err = errors.Join(err, e.detach(l))
		}
	}
	on.all = on.all[:len(on.all)-len(list)]
	e.place(on, list)
	for _, l := range list {
		l.forget()
		e.slab.give(l.active, 1)
	}
	e.unwatch(on)
	return err
}

// attach counts a listener as a user of the tracepoints that it takes.
func (e *events) attach(l *listener) error {
	hooks := e.hooks(l)
	for i, h := range hooks {
		if err := h.enter(); err != nil {
			for _, h := range hooks[:i] {
				err = errors.Join(err, h.leave())
			}
			return err
		}
	}
	return nil
}

func (e *events) detach(l *listener) error {
	var errs []error
	for _, h := range e.hooks(l) {
		errs = append(errs, h.leave())
	}
	return errors.Join(errs...)
}

// hooks are the tracepoints that a listener takes.
func (e *events) hooks(l *listener) []*hook {
	if isScheduling(l.point.kind) {
		return e.schedulingHooks(l.point.kind)
	}
	if l.point.kind == node.EventSysCallStarted && isNeverMadeAgain(l.point.number) {
		return []*hook{&e.enter}
	}
	return []*hook{&e.enter, &e.exit}
}

// place assembles anew the programs of a process that some listeners have to do with.
func (e *events) place(on *watched, changed []*listener) error {
	for _, kind := range []node.EventKind{node.EventSysCallStarted, node.EventSysCallEnded} {
		for number := range on.numbers(kind, changed) {
			if err := e.placeCall(on, point{kind, number}); err != nil {
				return err
			}
		}
		e.direct(on, kind)
	}
	if slices.ContainsFunc(changed, func(l *listener) bool { return isScheduling(l.point.kind) }) {
		return e.placeRoles(on)
	}
	return nil
}

// numbers are those of the system calls that some listeners have to do with.
func (on *watched) numbers(kind node.EventKind, changed []*listener) map[int]bool {
	numbers := make(map[int]bool)
	for _, l := range changed {
		if l.point.kind == kind {
			numbers[l.point.number] = true
		}
	}
	if numbers[everyCall] { // it has part in the programs of all
		for at := range on.places {
			if at.kind == kind {
				numbers[at.number] = true
			}
		}
	}
	return numbers
}

// placeCall assembles the program for a system call.
func (e *events) placeCall(on *watched, at point) error {
	h := &e.enter
	if at.kind == node.EventSysCallEnded {
		h = &e.exit
	}
	var list []*listener
	own := false
	for _, l := range on.all {
		if l.point == at || l.point == (point{at.kind, everyCall}) {
			list = append(list, l)
			own = own || l.point == at
		}
	}
	if !own {
		list = nil
	}
	return e.settle(on, at, h, len(list) > 0, func() asm.Instructions { return e.body(list) }, func(slot) { e.direct(on, at.kind) })
}

// settle gives a point of a process its program, or takes it away. direct has the root
// find the slot, or 0.
func (e *events) settle(on *watched, at point, h *hook, wanted bool, body func() asm.Instructions, direct func(slot)) error {
	s, stands := on.places[at]
	switch {
	case !wanted && stands:
		delete(on.places, at)
		direct(0)
		h.drop(s)
		return nil
	case !wanted:
		return nil
	case !stands:
		var err error
		if s, err = h.take(); err != nil {
			return err
		}
		on.places[at] = s
	}
	if err := h.put(s, body()); err != nil {
		return err
	}
	direct(s)
	return nil
}

// direct writes into the record of a process which program runs at which call.
func (e *events) direct(on *watched, kind node.EventKind) {
	table := recordStarted
	if kind == node.EventSysCallEnded {
		table = recordEnded
	}
	for number := range otherCalls + 1 {
		s, ok := on.places[point{kind, number}]
		if !ok {
			s = on.places[point{kind, everyCall}]
		}
		storeHalf(on.record.data[table+2*number:], uint16(s))
	}
}

// removeListeners takes programs away.
func (p *Placer) removeListeners(list []*listener) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	by := make(map[*watched][]*listener)
	for _, l := range list {
		l.SetActive(false)
		by[l.on] = append(by[l.on], l)
	}
	for on, gone := range by {
		on.all = slices.DeleteFunc(on.all, func(l *listener) bool { return slices.Contains(gone, l) })
		errs = append(errs, p.events.place(on, gone))
		for _, l := range gone {
			errs = append(errs, p.events.detach(l))
		}
	}
	awaitPrograms()
	for on, gone := range by {
		for _, l := range gone {
			l.forget()
			p.slab.give(l.active, 1)
		}
		p.events.unwatch(on)
	}
	return errors.Join(errs...)
}
