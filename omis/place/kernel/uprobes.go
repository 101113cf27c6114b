//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"

	"mirador/omis"
	"mirador/omis/code/x86/landing"
	"mirador/omis/host/proc"
	"mirador/omis/node"
	"mirador/omis/place/kernel/code"
	"mirador/omis/place/kernel/registrar"
	"mirador/omis/program"
)

// Boundaries returns a function that reports why no probe may be at an address of a process. The kernel
// does not check this: it sets a uprobe even in the middle of an instruction.
type Boundaries func(omis.ProcID) (func(addr uint64) error, error)

// uprobes places programs at addresses. memory.mu guards shapes and serial.
type uprobes struct {
	memory *memory
	keeper *keeper
	client *registrar.Client
	codes  *landing.Catalog
	nops   func() error // see survey; after the first call it answers at once
	bounds Boundaries   // nil: every address is accepted
	left   *leftovers

	planting sync.Mutex // held while uprobes are set and removed
	shapes   map[string]*shape
	serial   uint32 // of the last link
}

// shape is a code.Shape with the eBPF program that was loaded for it.
type shape struct {
	*code.Shape
	program *ebpf.Program
}

// placed is a program.Placed: a program at one address. memory.mu guards it.
type placed struct {
	uprobes   *uprobes
	target    *target
	site      site
	shape     *shape
	spot      code.Unit
	bunch     *bunch // nil: the uprobe is not set yet
	former    uint32 // serial number of the link that bunch replaces
	active    bool
	lasts     bool   // it outlives the monitor
	kindAdded string // see kindAdded
	err       error  // why the uprobe could not be set
}

var _ program.Placed = (*placed)(nil)

// mostNamed is the most threads that a program can be limited to. The program compares them one by one.
const mostNamed = 16

// judge finds sites for the programs of a list that are for addresses. It does not change the errors of
// the other programs. The caller holds memory.mu.
func (u *uprobes) judge(list []program.Placing, errs []error) []site {
	sites := make([]site, len(list))
	if len(list) == 0 {
		return sites
	}
	sv, err := u.survey(list[0].Watch.Proc)
	if err == nil {
		defer sv.close()
	}
	for i := range list {
		switch {
		case isEvent(list[i].Watch.Event):
		case err != nil:
			errs[i] = err
		default:
			sites[i], errs[i] = u.judgeOne(&list[i], sv)
		}
	}
	return sites
}

// OfThreads is why this placement times nothing in functions of Go.
const OfThreads = "a goroutine may leave the function on another thread, and intervals are of threads here"

func (u *uprobes) judgeOne(pl *program.Placing, sv *survey) (site, error) {
	if err := u.suits(pl); err != nil {
		return site{}, err
	}
	s, err := sv.siteFor(pl.Watch.Addr)
	if err == nil && (times(pl.Program) || pl.Program.RecordsStack()) && sv.runtime(pl.Watch.Addr) != nil {
		err = &program.Refusal{Why: OfThreads}
	}
	return s, err
}

// suits reports why a program cannot run at a uprobe, whatever its address.
func (u *uprobes) suits(pl *program.Placing) error {
	if pl.Watch.Event != node.EventReachedAddr {
		return &program.Refusal{Why: "the kernel runs programs where threads reach an address and at events of its own, not at others"}
	}
	named := len(pl.Watch.Threads)
	if named > mostNamed {
		return &program.Refusal{Why: fmt.Sprintf("a program in the kernel tells %d threads apart, not %d", mostNamed, named)}
	}
	if most := code.MostUnits - code.UnitsOfHead - named; len(pl.Program) > most {
		return &program.Refusal{Why: fmt.Sprintf("a program in the kernel has %d steps at most, not %d", most, len(pl.Program))}
	}
	if err := code.CanLoad(&pl.Watch, pl.Program); err != nil {
		return err
	}
	if err := u.memory.layout.CanRead(false, pl.Program); err != nil {
		return err
	}
	return u.memory.layout.CanTakeCPU(pl.Watch.Event, pl.Program)
}

// survey begins to examine the code of a process. The caller holds memory.mu.
func (u *uprobes) survey(id omis.ProcID) (*survey, error) {
	if err := proc.Alive(id); err != nil {
		return nil, err
	}
	if err := u.memory.layout.Reaches(id.PID); err != nil {
		return nil, program.Refuse(err)
	}
	sv, err := newSurvey(id.PID, u.codes, u.memory.current(id))
	if err != nil {
		return nil, err
	}
	sv.nops, sv.check = u.nops, func(uint64) error { return nil }
	if u.bounds != nil {
		sv.check, err = u.bounds(id)
	}
	return sv, err
}

// prepare does everything for a program except setting its uprobe. The caller holds memory.mu.
func (u *uprobes) prepare(what *program.Placing, s site) (*placed, error) {
	w, m := &what.Watch, u.memory
	only, err := threadsOf(w.Proc.PID, w.Threads)
	if err != nil {
		return nil, err
	}
	if err := openTrails(what.Program); err != nil {
		return nil, err
	}
	if err := claim(what.Program, atAddresses); err != nil {
		return nil, err
	}
	steps := resolve(what.Program)
	if pl := u.left.adopt(what, steps, only); pl != nil {
		pl.kindAdded = kindAdded(what.Program)
		return pl, nil
	}
	shape, err := u.load(code.ShapeOf(steps, len(only), w.When))
	if err != nil {
		return nil, err
	}
	t, err := m.enter(w.Proc)
	if err != nil {
		return nil, program.Refuse(err)
	}
	pl := &placed{uprobes: u, target: t, site: s, shape: shape, lasts: u.keeper.state != nil && lasts(what.Program), kindAdded: kindAdded(what.Program)}
	if pl.spot, err = m.slab.take(pl.units()); err != nil {
		t.leave()
		return nil, program.Refuse(err)
	}
	m.slab.WriteSpot(pl.spot, &code.Spot{Addr: s.addr, Asked: s.asked, Gone: t.gone, Steps: steps, Only: only})
	t.addSite(&pl.site)
	return pl, nil
}

func (pl *placed) units() int { return code.UnitsOfSpot(len(pl.shape.Steps), pl.shape.Threads) }

// threadsOf returns threads with their start times, which distinguish them from later threads with the
// same numbers.
func threadsOf(pid int, tids []int) ([]code.Thread, error) {
	var list []code.Thread
	for _, tid := range tids {
		ticks, err := proc.ThreadStart(pid, tid)
		if err != nil {
			return nil, omis.Errorf(omis.UnknownObject, "thread %d of process %d has ended", tid, pid)
		}
		list = append(list, code.Thread{TID: tid, Ticks: ticks})
	}
	return list, nil
}

// load loads the eBPF program of a shape, once for each shape. The caller holds memory.mu.
func (u *uprobes) load(s *code.Shape) (*shape, error) {
	name := s.String()
	if known := u.shapes[name]; known != nil {
		return known, nil
	}
	loaded, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "mirador", Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti,
		Instructions: u.memory.tables().AtUprobe(s), License: "GPL", // the kernel shows task_struct to GPL programs only
	})
	if err != nil {
		return nil, &program.Refusal{Why: fmt.Sprintf("the kernel refuses the program: %v", err)}
	}
	u.shapes[name] = &shape{s, loaded}
	return u.shapes[name], nil
}

// attach sets the uprobes of programs, and checks that they are there: the kernel ignores addresses
// that it does not take for code. The caller holds planting.
func (u *uprobes) attach(list []*placed) {
	if len(list) == 0 {
		return
	}
	u.memory.mu.Lock()
	bunches := u.group(list)
	u.memory.mu.Unlock()
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

// hide replaces uprobes in memory that was read from a process by the original bytes.
func (t *target) hide(addr uint64, memory []byte) {
	if len(t.sites) <= len(memory) {
		for at, p := range t.sites {
			p.hide(at, addr, memory)
		}
		return
	}
	for at := addr - min(addr, longest); at < addr+uint64(len(memory)); at++ {
		t.sites[at].hide(at, addr, memory)
	}
}

// longest is the length of the longest instruction.
const longest = 15

// hide puts the original bytes in. It replaces all of them, because the kernel changes every byte of a
// nop of five bytes.
func (p planted) hide(at, addr uint64, memory []byte) {
	for i, original := range p.code {
		if b := at + uint64(i); b >= addr && b-addr < uint64(len(memory)) {
			memory[b-addr] = original
		}
	}
}

// close unloads the programs.
func (u *uprobes) close() error {
	var errs []error
	for _, s := range u.shapes {
		errs = append(errs, s.program.Close())
	}
	return errors.Join(errs...)
}

// Verdict: see program.Placed.
func (pl *placed) Verdict() program.Verdict {
	return pl.uprobes.keeper.explain(pl.site.verdict(pl.kindAdded))
}

// Stands: see program.Placed.
func (pl *placed) Stands() bool { return !pl.target.isGone() }

// Lingers: see program.Placed. The removal of a uprobe waits for the threads that run its program.
func (pl *placed) Lingers() bool { return false }

// Covers: see program.Placed.
func (pl *placed) Covers(addr uint64) bool { return addr == pl.site.addr || addr == pl.site.asked }

// SetActive: see program.Placed.
func (pl *placed) SetActive(active bool) {
	pl.uprobes.memory.mu.Lock()
	defer pl.uprobes.memory.mu.Unlock()
	pl.active = active
	pl.tell()
}

// tell writes to the spot which links' hits count. The caller holds memory.mu.
func (pl *placed) tell() {
	var serial, former uint32
	if pl.active {
		serial, former = pl.bunch.serial, pl.former
	}
	pl.uprobes.memory.slab.SetSpotLinks(pl.spot, serial, former)
}

// free gives back what a removed program used.
func (pl *placed) free() {
	m := pl.uprobes.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	pl.target.removeSite(&pl.site)
	m.slab.give(pl.spot, pl.units())
	pl.target.leave()
}
