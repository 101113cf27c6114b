//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"

	"mirador/omis"
	"mirador/omis/code/x86/landing"
	"mirador/omis/host/tracepoint"
	"mirador/omis/host/uprobe"
	"mirador/omis/place/kernel/registrar"
	"mirador/omis/program"
)

// Placer places programs in the kernel of this machine. What it needs there it makes
// when the first store is asked for.
type Placer struct {
	planting sync.Mutex // while uprobes are set and taken out

	mu      sync.Mutex // taken after planting, and before that of a pool
	broken  error      // why nothing can be placed; found once
	opened  bool
	closed  bool
	set     *tracepoint.Set
	slab    *slab
	pools   pools
	layout  layout
	running *ebpf.Map // pid -> the unit that says whether it runs another program
	codes   *landing.Catalog
	nops    func() error // see survey; it answers at once from the second time on
	bounds  Boundaries   // nil: every address is taken for that of an instruction
	uprobes *registrar.Client
	targets map[omis.ProcID]*target
	events  events
	shapes  map[string]*shape
	serial  uint32 // of the last link
	zero    int64  // when the clock began that notes are dated by, in the kernel's time
	stop    chan struct{}
	swept   sync.WaitGroup

	notice func(string) // takes messages for the person who runs the monitor

	heir   heir
	estate *estate               // nil: everything ends with the monitor
	mortal atomic.Pointer[error] // why it does although there should be an estate
	pages  atomic.Uint32         // the number of the last
	left   leftovers             // of a former monitor
}

var _ program.Placer = (*Placer)(nil)

// New makes a placer. It takes nothing from the kernel yet. command is what runs
// registrar.Run on its standard input; without one the monitor sets uprobes itself, and
// may leave some of them for ever if it is killed just then.
func New(command []string) *Placer {
	p := &Placer{
		codes: landing.NewCatalog(), targets: make(map[omis.ProcID]*target),
		shapes: make(map[string]*shape), stop: make(chan struct{}), notice: func(string) {}, nops: checkNop,
	}
	p.uprobes = registrar.NewClient(command, p.noteRegistrar)
	return p
}

// Boundaries makes what says, of many addresses of a process, why no probe may stand at one:
// the kernel sets a uprobe wherever it is told to, inside of an instruction, too.
type Boundaries func(omis.ProcID) (func(addr uint64) error, error)

// CheckBy has addresses checked before anything is set there. It comes before the first
// program.
func (p *Placer) CheckBy(b Boundaries) { p.bounds = b }

// NoticeBy has messages for the person who runs the monitor go to notice. It comes before
// the first program.
func (p *Placer) NoticeBy(notice func(string)) { p.notice = notice }

// checkNop tests the kernel once.
var checkNop = sync.OnceValue(uprobe.CheckNop)

// Check tells why this monitor cannot place programs in this kernel; nil: it can.
func (p *Placer) Check() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready()
}

// mostProcesses is how many processes have programs placed in them at a time.
const mostProcesses = 1 << 12

// ready makes what all programs share. The caller holds mu.
func (p *Placer) ready() error {
	switch {
	case p.closed:
		return &program.Refusal{Why: "the monitor is closing down"}
	case p.opened || p.broken != nil:
		return p.broken
	}
	set := tracepoint.NewSet("run programs in the kernel")
	if err := p.open(set); err != nil {
		p.broken = &program.Refusal{Why: err.Error()}
		return errors.Join(p.broken, set.Close())
	}
	p.opened, p.set = true, set
	p.swept.Go(p.keepRoom)
	return nil
}

func (p *Placer) open(set *tracepoint.Set) (err error) {
	if p.layout, err = findLayout(); err != nil {
		return err
	}
	if err := features.HaveBPFLinkUprobeMulti(); errors.Is(err, ebpf.ErrNotSupported) {
		return errors.New("this kernel sets no uprobes for a process by eBPF (it takes Linux 6.6)")
	}
	if p.heir.data != "" {
		awaitRegistrar(p.heir.book, ending, p.notice)
		p.openEstate()
	}
	if p.estate != nil && p.takeOver(set) {
		return nil
	}
	if err := p.openShared(set); err != nil {
		return err
	}
	return p.openEvents(set)
}

// openShared makes what all programs share.
func (p *Placer) openShared(set *tracepoint.Set) (err error) {
	if p.slab, err = newSlab(set); err != nil {
		return err
	}
	if p.running, err = set.Map(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: mostProcesses}); err != nil {
		return err
	}
	exec, err := set.Link("sched_process_exec", p.onExec())
	if err == nil && p.estate != nil {
		p.bequeath(exec)
	}
	return err
}

// onExec notes that a process executes another program: its uprobes are none of ours
// any more, even where it maps the same file again.
func (p *Placer) onExec() asm.Instructions {
	code := p.layout.process(end)
	code = append(code,
		asm.StoreMem(asm.RFP, stackTID, asm.R0, asm.Word),
		asm.LoadMapPtr(asm.R1, p.running.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackTID),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, end),
		asm.LoadMem(asm.R2, asm.R0, 0, asm.Word))
	code = append(code, p.slab.address(asm.R1, asm.R2, end)...)
	return append(code,
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreMem(asm.R1, 0, asm.R2, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(end), asm.Return())
}

// NewStore: see program.Placer.
func (p *Placer) NewStore(id omis.ProcID, kind program.StoreKind) (program.Store, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kind == program.StoreTraces {
		return p.newTrail(id)
	}
	s, err := p.newStore(id, kind)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// newStore is NewStore. The caller holds mu.
func (p *Placer) newStore(id omis.ProcID, kind program.StoreKind) (*store, error) {
	if err := p.ready(); err != nil {
		return nil, err
	}
	t, err := p.enter(id)
	if err != nil {
		return nil, &program.Refusal{Why: err.Error()}
	}
	s := &store{placer: p, target: t}
	if err := s.open(kind); err != nil {
		t.leave()
		return nil, &program.Refusal{Why: fmt.Sprintf("cannot make a table in the kernel: %v", err)}
	}
	return s, nil
}

// open has a store begin, with rows of a kind. The caller holds Placer.mu.
func (s *store) open(rows program.StoreKind) (err error) {
	p := s.placer
	if s.pool, err = p.poolOf(rows); err != nil {
		return err
	}
	if s.cell, err = p.slab.take(1); err != nil {
		return err
	}
	p.slab.word(s.cell, cellEpoch).Store(1) // a row just taken is of epoch 0
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.pool.stores[uint32(s.cell)] = s
	return nil
}

// poolOf is the pool for a kind of rows, made at the first time. Those with notes end
// with the monitor. The caller holds mu.
func (p *Placer) poolOf(rows program.StoreKind) (_ *pool, err error) {
	if p.pools[rows] == nil {
		f, e := &forms[rows], p.estate
		if f.notes > 0 {
			e = nil
		}
		made, err := newPool(p.set, f, e)
		if err != nil {
			return nil, err
		}
		if err := made.provide(made.form.spare); err != nil {
			return nil, errors.Join(err, made.close())
		}
		p.pools[rows] = made
	}
	return p.pools[rows], nil
}

// openPools are those that there are.
func (p *Placer) openPools() []*pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.pools[:]), func(q *pool) bool { return q == nil })
}

// sweepEvery is how often pools are looked after.
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
		p.mu.Lock()
		p.events.forgetEnded()
		p.mu.Unlock()
		for _, q := range p.openPools() {
			_ = q.sweep() // rows that find no room are counted
		}
	}
}

// Close frees what is shared. Programs and stores must have been removed.
func (p *Placer) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	opened := p.opened
	p.mu.Unlock()
	if !opened {
		p.uprobes.Close()
		return nil
	}
	close(p.stop)
	p.swept.Wait()
	p.events.records.close()
	var errs []error
	for _, s := range p.shapes {
		errs = append(errs, s.program.Close())
	}
	for _, q := range p.openPools() {
		errs = append(errs, q.close())
	}
	if p.estate != nil {
		errs = append(errs, p.estate.wipe())
	}
	return errors.Join(append(errs, p.slab.close(), p.set.Close(), p.dismissRegistrar())...)
}
