//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/calls"
	"mirador/omis/host/proc"
	"mirador/omis/host/tracepoint"
	"mirador/omis/node"
	"mirador/omis/place/kernel/code"
	"mirador/omis/place/kernel/persist"
	"mirador/omis/program"
)

// events places programs at events of the kernel itself: system calls and scheduling. Callers hold
// memory.mu.
type events struct {
	memory      *memory
	left        *leftovers
	records     records
	enter, exit hook             // of system calls
	roles       [code.Roles]hook // of scheduling
	interrupted *ebpf.Map        // interrupted system calls, by code.Key of the thread
	returning   *ebpf.Map        // threads that are in rt_sigreturn, by code.Key
	states      *ebpf.Map        // what threads were doing last, by thread id; of threads whose scheduling is observed
	watched     map[omis.ProcID]*watched
}

// watched is a process whose events are observed.
type watched struct {
	proc   omis.ProcID
	record record
	slots  map[point]slot // where the programs are
	all    []*listener    // in the order in which they were placed
}

// point is a kind of event: the start or end of a system call, or a scheduling event.
type point struct {
	kind   node.EventKind
	number int // of the system call
}

// everyCall is the number of a point that includes all system calls.
const everyCall = -1

// open makes the tables, or opens those that another monitor pinned.
func (e *events) open() error {
	k := e.memory.keeper
	if k.state == nil {
		return e.openTables(e.memory.set)
	}
	var done bool
	if _, err := k.journal.Get(persist.EventsKey, &done); err != nil || !done {
		if err := k.state.DropEvents(); err != nil {
			return err
		}
	}
	if err := e.openTables(pinnedMaps{e.memory}); err != nil {
		return err
	}
	if k.failure.Load() == nil {
		k.fails(k.journal.Put(persist.EventsKey, true))
	}
	return nil
}

// pinnedMaps makes and pins maps, and opens those that are pinned already.
type pinnedMaps struct{ memory *memory }

// Map: see maps.
func (m pinnedMaps) Map(spec *ebpf.MapSpec) (*ebpf.Map, error) {
	folder, name, set := m.memory.keeper.state.Folder, persist.Table(spec.Name), m.memory.set
	if folder.Has(name) {
		former, err := folder.Map(name)
		if err == nil {
			set.Add(former)
		}
		return former, err
	}
	fresh, err := set.Map(spec)
	if err == nil {
		m.memory.keeper.fails(fresh.Pin(folder.Path(name)))
	}
	return fresh, err
}

func (e *events) openTables(set maps) (err error) {
	e.watched = make(map[omis.ProcID]*watched)
	if err := e.records.open(set); err != nil {
		return err
	}
	k := e.memory.keeper
	e.enter = hook{Bodies: code.Bodies{Name: "enter"}, keeper: k, tracepoint: "sys_enter", root: func(b *code.Bodies) asm.Instructions { return e.code().OnEnter(b) }}
	e.exit = hook{Bodies: code.Bodies{Name: "exit"}, keeper: k, tracepoint: "sys_exit", root: func(b *code.Bodies) asm.Instructions { return e.code().OnExit(b) }}
	for r := range code.Roles {
		e.roles[r] = hook{
			Bodies: code.Bodies{Name: fmt.Sprint("role", r)}, keeper: k, tracepoint: code.TracepointOf(r),
			root: func(b *code.Bodies) asm.Instructions { return e.code().OnRole(r, b) },
		}
	}
	for _, h := range e.allHooks() {
		if err := h.open(set); err != nil {
			return err
		}
	}
	e.states, err = set.Map(&ebpf.MapSpec{Name: "states", Type: ebpf.Hash, KeySize: 4, ValueSize: code.SizeOfState, MaxEntries: 1 << 15, Flags: unix.BPF_F_NO_PREALLOC})
	if err != nil {
		return err
	}
	e.interrupted, err = set.Map(&ebpf.MapSpec{Name: "interrupted", Type: ebpf.Hash, KeySize: 16, ValueSize: code.SizeOfBroken, MaxEntries: 1 << 12, Flags: unix.BPF_F_NO_PREALLOC})
	if err != nil {
		return err
	}
	// A thread is in it for a moment only. Entries of processes that are no longer observed make room when others need it.
	e.returning, err = set.Map(&ebpf.MapSpec{Name: "returning", Type: ebpf.LRUHash, KeySize: 16, ValueSize: 8, MaxEntries: 1 << 12})
	return err
}

// code returns the tables that the code of programs refers to.
func (e *events) code() *code.Events {
	return &code.Events{Tables: *e.memory.tables(), Records: e.records.Records, Interrupted: e.interrupted, Returning: e.returning, States: e.states}
}

// allHooks returns the hooks of all tracepoints.
func (e *events) allHooks() []*hook {
	list := []*hook{&e.enter, &e.exit}
	for r := range e.roles {
		list = append(list, &e.roles[r])
	}
	return list
}

// try attaches to each tracepoint for a moment, and reports why that fails.
func (e *events) try() error {
	for _, h := range e.allHooks() {
		if err := h.enter(); err != nil {
			return err
		}
		if err := h.leave(); err != nil {
			return err
		}
	}
	return e.memory.layout.CanSeeScheduling()
}

// isEvent reports whether an event is one of the kernel's own.
func isEvent(kind node.EventKind) bool { return isCall(kind) || code.IsScheduling(kind) }

func isCall(kind node.EventKind) bool {
	return kind == node.EventSysCallStarted || kind == node.EventSysCallEnded
}

// judge reports whether a program can run at an event, and returns the event's point.
func (e *events) judge(pl *program.Placing) (point, error) {
	w, layout := &pl.Watch, &e.memory.layout
	if len(w.Threads) > mostNamed {
		return point{}, &program.Refusal{Why: fmt.Sprintf("a program in the kernel tells %d threads apart, not %d", mostNamed, len(w.Threads))}
	}
	if err := layout.CanTakeCPU(w.Event, pl.Program); err != nil {
		return point{}, err
	}
	if err := layout.CanRead(code.IsScheduling(w.Event), pl.Program); err != nil {
		return point{}, err
	}
	if err := code.CanLoad(w, pl.Program); err != nil {
		return point{}, err
	}
	if err := proc.Alive(w.Proc); err != nil {
		return point{}, err
	}
	if err := layout.Reaches(w.Proc.PID); err != nil {
		return point{}, program.Refuse(err)
	}
	switch {
	case code.IsScheduling(w.Event):
		return point{kind: w.Event}, layout.CanSeeScheduling()
	case w.Name == "":
		return point{w.Event, everyCall}, nil
	}
	if err := layout.CanSeeFiles(w); err != nil {
		return point{}, err
	}
	name, _ := calls.Split(w.Name)
	call, ok := calls.ByName(name)
	if !ok {
		return point{}, calls.Unknown(w.Name)
	}
	return point{w.Event, call.Number}, nil
}

// listen places those programs of a list that are for events of the kernel. All programs of the list are
// for one process. Either all of them run afterwards, or none.
func (e *events) listen(list []program.Placing, stand []program.Placed, errs []error) {
	var began []*listener
	for i := range list {
		if !isEvent(list[i].Watch.Event) {
			continue
		}
		l, err := e.prepare(&list[i])
		if err != nil {
			errs[i] = err
			continue
		}
		stand[i] = l
		if !slices.Contains(l.on.all, l) { // an adopted listener runs already
			began = append(began, l)
		}
	}
	err := e.begin(began)
	for i := range stand {
		if err != nil && stand[i] != nil {
			stand[i], errs[i] = nil, err
		}
	}
}

func (e *events) prepare(what *program.Placing) (*listener, error) {
	w := &what.Watch
	at, err := e.judge(what)
	if err != nil {
		return nil, err
	}
	only, err := threadsOf(w.Proc.PID, w.Threads)
	if err != nil {
		return nil, err
	}
	if err := openTrails(what.Program); err != nil {
		return nil, err
	}
	if code.IsScheduling(w.Event) {
		if err := claim(what.Program, atSwitches); err != nil {
			return nil, err
		}
	}
	_, file := calls.Split(w.Name)
	if l := e.left.adoptListener(what, at, only, file); l != nil {
		return l, nil
	}
	on, err := e.watch(w.Proc)
	if err != nil {
		return nil, err
	}
	l := &listener{events: e, on: on, point: at, program: what.Program}
	l.code = code.Listener{Kind: at.kind, Steps: resolve(what.Program), Only: only, File: file}
	if l.code.Active, err = e.memory.slab.take(1); err != nil {
		e.unwatch(on)
		return nil, program.Refuse(err)
	}
	e.memory.keeper.keepListener(l)
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
	w := &watched{proc: id, record: rec, slots: make(map[point]slot)}
	e.watched[id] = w
	e.memory.keeper.put(persist.Processes, code.Unit(rec.at), persist.Watched{Proc: id})
	return w, nil
}

// unwatch removes the record of a process that has no listeners.
func (e *events) unwatch(w *watched) {
	if len(w.all) > 0 || e.watched[w.proc] != w {
		return
	}
	delete(e.watched, w.proc)
	e.records.hide(w.proc)
	awaitPrograms()
	e.memory.keeper.delete(persist.Processes, code.Unit(w.record.at))
	e.records.give(w.record)
}

// awaitPrograms returns when all programs have ended that may have read the tables before they were
// changed. Programs at tracepoints cannot be preempted, so it is enough to wait for a grace period of the
// kernel, as membarrier(2) does.
func awaitPrograms() {
	const global = 1
	// It fails on kernels with processors reserved for real-time programs (nohz_full). Then a program may
	// still use old contents for a moment.
	_, _, _ = unix.Syscall(unix.SYS_MEMBARRIER, global, 0, 0)
}

// begin starts listeners of one process: either all of them, or none.
func (e *events) begin(list []*listener) error {
	if len(list) == 0 {
		return nil
	}
	defer runtime.KeepAlive(tracepoint.KernelTypes()) // one request may load hundreds of programs
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
		if err = e.assemble(on, list); err == nil {
			e.noteWaiting(on, list)
			return nil
		}
		for _, l := range list {
			err = errors.Join(err, e.detach(l))
		}
	}
	on.all = on.all[:len(on.all)-len(list)]
	e.assemble(on, list)
	for _, l := range list {
		e.free(l)
	}
	e.unwatch(on)
	return err
}

// attach adds a listener to the users of its hooks.
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

// hooks returns the hooks that a listener needs.
func (e *events) hooks(l *listener) []*hook {
	if code.IsScheduling(l.point.kind) {
		return e.schedulingHooks(l.point.kind)
	}
	if l.point.kind == node.EventSysCallStarted && isNeverRestarted(l.point.number) {
		return []*hook{&e.enter}
	}
	return []*hook{&e.enter, &e.exit}
}

// assemble assembles again those programs of a process that contain the code of a changed listener.
func (e *events) assemble(on *watched, changed []*listener) error {
	for _, kind := range []node.EventKind{node.EventSysCallStarted, node.EventSysCallEnded} {
		for number := range on.numbers(kind, changed) {
			if err := e.assembleCall(on, point{kind, number}); err != nil {
				return err
			}
		}
		e.direct(on, kind)
	}
	if slices.ContainsFunc(changed, func(l *listener) bool { return code.IsScheduling(l.point.kind) }) {
		return e.assembleRoles(on)
	}
	return nil
}

// numbers returns the system calls whose programs contain the code of a changed listener.
func (on *watched) numbers(kind node.EventKind, changed []*listener) map[int]bool {
	numbers := make(map[int]bool)
	for _, l := range changed {
		if l.point.kind == kind {
			numbers[l.point.number] = true
		}
	}
	if numbers[everyCall] { // the code of such a listener is in all programs
		for at := range on.slots {
			if at.kind == kind {
				numbers[at.number] = true
			}
		}
	}
	return numbers
}

// assembleCall assembles the program for a system call.
func (e *events) assembleCall(on *watched, at point) error {
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
	return e.setBody(on, at, h, len(list) > 0, func() asm.Instructions { return e.code().AtCall(codesOf(list)) }, func(slot) { e.direct(on, at.kind) })
}

// setBody sets or removes the program of a process for a point. body assembles the program. direct writes
// the slot, or 0, to the record of the process.
func (e *events) setBody(on *watched, at point, h *hook, wanted bool, body func() asm.Instructions, direct func(slot)) error {
	s, stands := on.slots[at]
	switch {
	case !wanted && stands:
		delete(on.slots, at)
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
		on.slots[at] = s
	}
	if err := h.put(s, body()); err != nil {
		return err
	}
	direct(s)
	return nil
}

// direct writes the slots of system calls to the record of a process.
func (e *events) direct(on *watched, kind node.EventKind) {
	table := code.RecordStarted
	if kind == node.EventSysCallEnded {
		table = code.RecordEnded
	}
	for number := range code.OtherCalls + 1 {
		s, ok := on.slots[point{kind, number}]
		if !ok {
			s = on.slots[point{kind, everyCall}]
		}
		on.record.setSlot(table+2*number, s)
	}
}

// remove removes listeners.
func (e *events) remove(list []*listener) error {
	e.memory.mu.Lock()
	defer e.memory.mu.Unlock()
	var errs []error
	by := make(map[*watched][]*listener)
	for _, l := range list {
		l.SetActive(false)
		by[l.on] = append(by[l.on], l)
	}
	for on, gone := range by {
		on.all = slices.DeleteFunc(on.all, func(l *listener) bool { return slices.Contains(gone, l) })
		errs = append(errs, e.assemble(on, gone))
		for _, l := range gone {
			errs = append(errs, e.detach(l))
		}
	}
	awaitPrograms()
	for on, gone := range by {
		for _, l := range gone {
			e.free(l)
		}
		e.unwatch(on)
	}
	return errors.Join(errs...)
}

// free gives back what a removed listener used.
func (e *events) free(l *listener) {
	e.memory.keeper.unkeepListener(l)
	e.memory.slab.give(l.code.Active, 1)
}
