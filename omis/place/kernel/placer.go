//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"

	"mirador/omis"
	"mirador/omis/code/x86/landing"
	"mirador/omis/host/tracepoint"
	"mirador/omis/host/uprobe"
	"mirador/omis/place/kernel/code"
	"mirador/omis/place/kernel/persist"
	"mirador/omis/place/kernel/registrar"
	"mirador/omis/program"
)

// Name is the name of this placement.
const Name = "kernel"

// Placer places programs in the kernel of this machine. It takes nothing from the kernel until the
// first store or program is requested. Its methods may be called from any goroutine.
type Placer struct {
	memory  *memory // its lock guards the fields below, too
	keeper  *keeper
	uprobes *uprobes
	events  events
	left    leftovers

	broken error // why no program can be placed
	opened bool
	closed bool
	stop   chan struct{}
	swept  sync.WaitGroup
	notice func(string) // takes messages for the person who runs the monitor
}

var (
	_ program.Placer = (*Placer)(nil)
	_ program.Keeper = (*Placer)(nil)

	_ program.SourceReader = (*Placer)(nil)
)

// New makes a placer whose programs end with the monitor. command starts a process that calls
// registrar.Run with its standard input. With an empty command the monitor sets uprobes itself; if it
// is killed while it does, some of them stay for ever.
func New(command []string) *Placer { return NewKeeper(command, "", nil) }

// NewKeeper makes a placer whose programs can outlive it. Their records are in the journal, their
// kernel objects belong to the data directory. No other placer may use either of them.
func NewKeeper(command []string, data string, journal persist.Journal) *Placer {
	k := &keeper{data: data, journal: journal}
	k.client = registrar.NewClient(command, k.noteRegistrar)
	m := &memory{keeper: k, targets: make(map[omis.ProcID]*target)}
	p := &Placer{memory: m, keeper: k, stop: make(chan struct{}), notice: func(string) {}}
	p.uprobes = &uprobes{
		memory: m, keeper: k, client: k.client, codes: landing.NewCatalog(), nops: checkNop,
		shapes: make(map[string]*shape), left: &p.left,
	}
	p.events.memory, p.events.left = m, &p.left
	return p
}

// CheckBy sets the check that is made of each address before a uprobe is set there. The caller calls it
// before it places the first program.
func (p *Placer) CheckBy(b Boundaries) { p.uprobes.bounds = b }

// NoticeBy sets the function that takes messages for the person who runs the monitor. The caller calls it
// before it places the first program.
func (p *Placer) NoticeBy(notice func(string)) { p.notice = notice }

// DateBy sets the clock that dates records; without it the kernel's monotonic clock dates them. Both clocks
// must run at the same rate. The caller calls it before it makes the first store.
func (p *Placer) DateBy(now func() int64) { p.memory.dateBy(now) }

// checkNop tests once what this kernel does with uprobes at nops of five bytes.
var checkNop = sync.OnceValue(uprobe.CheckNop)

// Check reports why this monitor cannot place programs in this kernel.
func (p *Placer) Check() error {
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	return p.ready()
}

// CheckEvents reports why this monitor cannot place programs at system calls and scheduling events.
func (p *Placer) CheckEvents() error {
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	if err := p.ready(); err != nil {
		return err
	}
	return p.events.try()
}

// ready opens the placer at the first call. The caller holds memory.mu.
func (p *Placer) ready() error {
	switch {
	case p.closed:
		return &program.Refusal{Why: "the monitor is closing down"}
	case p.opened || p.broken != nil:
		return p.broken
	}
	p.memory.set = tracepoint.NewSet("run programs in the kernel")
	if err := p.open(); err != nil {
		p.broken = program.Refuse(err)
		return errors.Join(p.broken, p.memory.set.Close())
	}
	p.opened = true
	p.swept.Go(p.keepRoom)
	return nil
}

func (p *Placer) open() (err error) {
	if p.memory.layout, err = code.FindLayout(); err != nil {
		return err
	}
	if err := features.HaveBPFLinkUprobeMulti(); errors.Is(err, ebpf.ErrNotSupported) {
		return errors.New("this kernel sets no uprobes for a process by eBPF (it takes Linux 6.6)")
	}
	if p.keeper.data != "" {
		awaitRegistrar(p.keeper.journal, ending, p.notice)
		p.keeper.open()
	}
	if p.keeper.state != nil && p.adopt() {
		return nil
	}
	if err := p.memory.open(); err != nil {
		return err
	}
	return p.events.open()
}

// NewStore: see program.Placer.
func (p *Placer) NewStore(id omis.ProcID, kind program.StoreKind) (program.Store, error) {
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	if err := p.ready(); err != nil {
		return nil, err
	}
	if kind == program.StoreTraces {
		return p.memory.newTrail(id)
	}
	s, err := p.memory.newStore(id, kind)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// sweepEvery is how often the monitor looks for rows of ended threads.
const sweepEvery = 250 * time.Millisecond

// keepRoom keeps pools from filling up with rows of ended threads.
func (p *Placer) keepRoom() {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
		}
		p.memory.mu.Lock()
		p.events.forgetEnded()
		p.memory.mu.Unlock()
		for _, q := range p.memory.openPools() {
			_ = q.sweep() // hits that find no row are counted
		}
	}
}

// ReadsSources: see program.SourceReader. No call of this package waits for a thread with the lock of a pool
// held.
func (*Placer) ReadsSources() bool { return true }

// Name: see program.Placer.
func (*Placer) Name() string { return Name }

// Judge: see program.Placer.
func (p *Placer) Judge(list []program.Placing) ([]program.Verdict, []error) {
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	verdicts, errs := make([]program.Verdict, len(list)), make([]error, len(list))
	if err := p.ready(); err != nil {
		return verdicts, fill(errs, err)
	}
	sites := p.uprobes.judge(list, errs)
	for i := range list {
		if isEvent(list[i].Watch.Event) {
			var at point
			if at, errs[i] = p.events.judge(&list[i]); errs[i] == nil {
				verdicts[i] = at.verdict()
			}
		} else if errs[i] == nil {
			verdicts[i] = p.keeper.explain(sites[i].verdict(kindAdded(list[i].Program)))
		}
	}
	return verdicts, errs
}

func fill(errs []error, err error) []error {
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// Place: see program.Placer.
func (p *Placer) Place(list []program.Placing) ([]program.Placed, []error) {
	p.uprobes.planting.Lock()
	defer p.uprobes.planting.Unlock()
	stand, all, errs := p.prepare(list)
	var fresh []*placed
	for _, pl := range all {
		if pl != nil && pl.bunch == nil {
			fresh = append(fresh, pl)
		}
	}
	p.uprobes.attach(fresh)
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

// prepare does everything for programs except setting uprobes. It returns the programs at events of
// the kernel, which run from now on, and those at addresses.
func (p *Placer) prepare(list []program.Placing) ([]program.Placed, []*placed, []error) {
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	listeners, all, errs := make([]program.Placed, len(list)), make([]*placed, len(list)), make([]error, len(list))
	if err := p.ready(); err != nil {
		return listeners, all, fill(errs, err)
	}
	p.events.listen(list, listeners, errs)
	sites := p.uprobes.judge(list, errs)
	fresh := 0
	for i := range list {
		if errs[i] != nil || listeners[i] != nil {
			continue
		}
		if all[i], errs[i] = p.uprobes.prepare(&list[i], sites[i]); errs[i] == nil {
			fresh++
		}
	}
	p.memory.provide(fresh)
	return listeners, all, errs
}

// Remove: see program.Placer.
func (p *Placer) Remove(list []program.Placed) error {
	p.uprobes.planting.Lock()
	defer p.uprobes.planting.Unlock()
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
		err = errors.Join(err, p.events.remove(listeners))
	}
	return err
}

// Hide replaces uprobes in memory that was read from a process by the original bytes.
func (p *Placer) Hide(id omis.ProcID, addr uint64, memory []byte) {
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	if !p.opened {
		return
	}
	if t := p.memory.current(id); t != nil {
		t.hide(addr, memory)
	}
}

// Keep: see program.Keeper.
func (p *Placer) Keep(id omis.ProcID, kind program.StoreKind, key string) (program.Store, error) {
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	if err := p.ready(); err != nil {
		return nil, err
	}
	if kind == program.StoreTraces { // traces do not outlive the monitor
		return p.memory.newTrail(id)
	}
	if s := p.left.adoptStore(id, kind, key); s != nil {
		return s, nil
	}
	s, err := p.memory.newStore(id, kind)
	if err != nil {
		return nil, err
	}
	s.keep(key)
	return s, nil
}

// Recall: see program.Keeper.
func (p *Placer) Recall(id omis.ProcID, kind program.StoreKind, key string) (program.Store, error) {
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	if !p.hasLeft() {
		return nil, nil
	}
	if err := p.ready(); err != nil {
		return nil, err
	}
	if s := p.left.adoptStore(id, kind, key); s != nil {
		return s, nil
	}
	return nil, nil // a nil *store would not be a nil program.Store
}

// hasLeft reports whether there may be leftovers. The caller holds memory.mu.
func (p *Placer) hasLeft() bool { return p.opened || p.keeper.hasLeft() }

// Meet: see program.Keeper. The leftovers of all processes are found when the placer is opened.
func (*Placer) Meet(omis.ProcID) ([]program.Orphan, error) { return nil, nil }

// Settle: see program.Keeper.
func (p *Placer) Settle() ([]program.Orphan, error) {
	left, err := p.unwanted()
	if err != nil {
		return nil, err
	}
	orphans := left.orphans
	var placed []program.Placed
	for _, list := range left.placed {
		for _, pl := range list {
			orphans, placed = append(orphans, pl.orphan()), append(placed, pl)
		}
	}
	for _, l := range left.listeners {
		orphans, placed = append(orphans, l.orphan()), append(placed, l)
	}
	errs := []error{left.unmended, p.Remove(placed)}
	for s, key := range left.stores {
		orphans = append(orphans, program.Orphan{Proc: s.target.proc, What: "what was measured for " + key})
		errs = append(errs, s.Close())
	}
	return orphans, errors.Join(errs...)
}

// unwanted returns the leftovers that no request has adopted.
func (p *Placer) unwanted() (left leftovers, err error) {
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	if !p.hasLeft() {
		return left, nil
	}
	if err := p.ready(); err != nil {
		return left, fmt.Errorf("what a former monitor has left in the kernel cannot be looked after: %w", err)
	}
	left, p.left = p.left, leftovers{}
	return left, nil
}

// Registrar returns the id of the process that sets uprobes, 0 if there is none.
func (p *Placer) Registrar() int { return p.keeper.client.PID() }

// Close frees what programs share. The caller has removed all programs and closed all stores.
func (p *Placer) Close() error {
	p.memory.mu.Lock()
	if p.closed {
		p.memory.mu.Unlock()
		return nil
	}
	p.closed = true
	opened := p.opened
	p.memory.mu.Unlock()
	if !opened {
		p.keeper.client.Close()
		return nil
	}
	close(p.stop)
	p.swept.Wait()
	p.events.records.close()
	errs := []error{p.uprobes.close()}
	for _, q := range p.memory.openPools() {
		errs = append(errs, q.close())
	}
	errs = append(errs, p.keeper.close(), p.memory.slab.close(), p.memory.set.Close(), p.keeper.dismissRegistrar())
	return errors.Join(errs...)
}
