//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/linux/proc"
)

// Name is the name of this placement.
const Name = "kernel"

// placed is an omis.Placed: one program at one uprobe of one process.
type placed struct {
	placer  *Placer
	target  *target
	site    site
	active  word
	program *ebpf.Program
	link    link.Link
}

var _ omis.Placed = (*placed)(nil)

// mostNamed is how many threads a program tells apart; they are compared one by one.
const mostNamed = 16

// Name: see omis.Placer.
func (*Placer) Name() string { return Name }

// Judge: see omis.Placer.
func (p *Placer) Judge(list []omis.Placing) ([]omis.Verdict, []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	verdicts, errs := make([]omis.Verdict, len(list)), make([]error, len(list))
	for i := range list {
		verdicts[i], errs[i] = p.verdict(list[i].Watch)
	}
	return verdicts, errs
}

func (p *Placer) verdict(w omis.Watch) (omis.Verdict, error) {
	if isEvent(w.Event) {
		at, err := p.judgeEvent(w)
		if err != nil {
			return omis.Verdict{}, err
		}
		return at.verdict(), nil
	}
	s, err := p.judge(w)
	if err != nil {
		return omis.Verdict{}, err
	}
	return s.verdict(), nil
}

// judge finds the place for a program. The caller holds mu.
func (p *Placer) judge(w omis.Watch) (site, error) {
	if w.Event != omis.EventReachedAddr {
		return site{}, &omis.Refusal{Why: "the kernel runs programs where threads reach an address and at events of its own, not at others"}
	}
	if err := p.ready(); err != nil {
		return site{}, err
	}
	if len(w.Threads) > mostNamed {
		return site{}, &omis.Refusal{Why: fmt.Sprintf("a program in the kernel tells %d threads apart, not %d", mostNamed, len(w.Threads))}
	}
	if err := proc.Alive(w.Proc); err != nil {
		return site{}, err
	}
	if err := p.layout.reaches(w.Proc.PID); err != nil {
		return site{}, &omis.Refusal{Why: err.Error()}
	}
	t := p.targets[w.Proc]
	ours := t != nil && !t.isGone() && t.sites[w.Addr].count > 0
	return findSite(w.Proc.PID, w.Addr, ours)
}

// Place: see omis.Placer.
func (p *Placer) Place(list []omis.Placing) ([]omis.Placed, []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, errs := p.listen(list)
	for i := range list {
		if isEvent(list[i].Watch.Event) {
			continue
		}
		pl, err := p.place(list[i].Watch, list[i].Program)
		if err != nil {
			errs[i] = err
			continue
		}
		all[i] = pl
	}
	return all, errs
}

// place places one program. The caller holds mu.
func (p *Placer) place(w omis.Watch, steps omis.Program) (*placed, error) {
	s, err := p.judge(w)
	if err != nil {
		return nil, err
	}
	only, err := named(w.Proc.PID, w.Threads)
	if err != nil {
		return nil, err
	}
	t, err := p.enter(w.Proc)
	if err != nil {
		return nil, &omis.Refusal{Why: err.Error()}
	}
	pl := &placed{placer: p, target: t, site: s}
	a := assembler{layout: &p.layout, control: p.control, gone: t.gone, addr: w.Addr, only: only}
	if err := pl.plant(&a, steps); err != nil {
		pl.free()
		return nil, err
	}
	standing := t.sites[w.Addr]
	t.sites[w.Addr] = uprobes{standing.count + 1, s.code}
	return pl, nil
}

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

// plant loads the program and sets the uprobe. The kernel sets one only where it
// thinks that code is; so it is looked after.
func (pl *placed) plant(a *assembler, steps omis.Program) (err error) {
	if pl.active, err = pl.placer.control.take(); err != nil {
		return &omis.Refusal{Why: err.Error()}
	}
	a.active = pl.active
	pl.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "mirador", Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti,
		Instructions: a.program(steps), License: "GPL", // tasks are shown to programs under the GPL alone
	})
	if err != nil {
		return &omis.Refusal{Why: fmt.Sprintf("the kernel refuses the program: %v", err)}
	}
	file, err := link.OpenExecutable(pl.site.path)
	if err != nil {
		return &omis.Refusal{Why: fmt.Sprintf("cannot open %s for a uprobe: %v", pl.site.file, err)}
	}
	pl.link, err = file.UprobeMulti(nil, pl.program, &link.UprobeMultiOptions{Addresses: []uint64{pl.site.offset}, PID: uint32(pl.target.proc.PID)})
	if err != nil {
		return &omis.Refusal{Why: unplanted(err, pl.site)}
	}
	var now [1]byte
	if n, err := proc.ReadMemory(pl.target.proc.PID, a.addr, now[:]); err != nil || n == 0 || now[0] == pl.site.code[0] {
		return &omis.Refusal{Why: fmt.Sprintf("the kernel did not set the uprobe at %#x", a.addr)}
	}
	return nil
}

// unplanted says why there is no uprobe.
func unplanted(err error, s site) string {
	const notSupported = unix.Errno(524) // ENOTSUPP, which never was meant for user space
	switch {
	case errors.Is(err, ebpf.ErrNotSupported):
		return "this kernel sets no uprobes for a process by eBPF (it takes Linux 6.6)"
	case errors.Is(err, notSupported), errors.Is(err, unix.EINVAL):
		return fmt.Sprintf("the kernel sets no uprobe on the instruction at %#x of %s", s.offset, s.file)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return "the kernel forbids uprobes (the monitor lacks CAP_PERFMON, or the kernel is locked down)"
	}
	return fmt.Sprintf("no uprobe in %s: %v", s.file, err)
}

// Hide puts the original bytes where uprobes stand into memory that was read.
func (p *Placer) Hide(id omis.ProcID, addr uint64, memory []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.targets[id]
	if t == nil || t.isGone() {
		return
	}
	for at, s := range t.sites {
		for i, original := range s.code { // of a nop the kernel replaces all bytes
			if b := at + uint64(i); b >= addr && b-addr < uint64(len(memory)) {
				memory[b-addr] = original
			}
		}
	}
}

func (pl *placed) Verdict() omis.Verdict { return pl.site.verdict() }

func (pl *placed) Stands() bool { return !pl.target.isGone() }

func (pl *placed) Covers(addr uint64) bool { return addr == pl.site.addr }

func (pl *placed) SetActive(active bool) {
	var v uint64
	if active {
		v = 1
	}
	pl.placer.control.at(pl.active).Store(v)
}

// atOnce bounds how many uprobes are taken out at the same time.
const atOnce = 32

// Remove takes uprobes out at the same time: the kernel waits each time until nobody is
// in the program.
func (p *Placer) Remove(list []omis.Placed) error {
	var all sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	errs := make([]error, len(list), len(list)+1)
	var listeners []*listener
	for i := range list {
		if l, ok := list[i].(*listener); ok {
			listeners = append(listeners, l)
			continue
		}
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			errs[i] = list[i].(*placed).remove()
		})
	}
	all.Wait()
	if len(listeners) > 0 {
		errs = append(errs, p.removeListeners(listeners))
	}
	return errors.Join(errs...)
}

func (pl *placed) remove() error {
	pl.SetActive(false)
	err := pl.link.Close()
	pl.link = nil
	pl.placer.mu.Lock()
	defer pl.placer.mu.Unlock()
	t := pl.target
	if left := t.sites[pl.site.addr].count - 1; left > 0 {
		t.sites[pl.site.addr] = uprobes{left, pl.site.code}
	} else {
		delete(t.sites, pl.site.addr)
	}
	pl.free()
	return err
}

// free gives everything back. The caller holds Placer.mu.
func (pl *placed) free() {
	if pl.link != nil {
		pl.link.Close()
	}
	if pl.program != nil {
		pl.program.Close()
	}
	if pl.active != 0 {
		pl.placer.control.give(pl.active)
	}
	pl.target.leave()
}
