//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"

	"mirador/omis"
	"mirador/omis/linux/tracepoint"
)

// Placer places programs in the kernel of this machine. What it needs there it makes
// when the first store is asked for.
type Placer struct {
	mu      sync.Mutex
	broken  error // why nothing can be placed; found once
	opened  bool
	closed  bool
	set     *tracepoint.Set
	control *control
	layout  layout
	running *ebpf.Map // pid -> the word that says whether it runs another program
	targets map[omis.ProcID]*target
	events  events
	stores  []*store
	stop    chan struct{}
	swept   sync.WaitGroup
}

// target is a process that programs are placed in.
type target struct {
	placer *Placer
	proc   omis.ProcID
	gone   word
	users  int                // stores and programs
	sites  map[uint64]uprobes // of ours, by address
}

// uprobes are those at one address.
type uprobes struct {
	count int
	code  []byte // the instruction that stands there
}

var _ omis.Placer = (*Placer)(nil)

// New makes a placer. It takes nothing from the kernel yet.
func New() *Placer { return &Placer{targets: make(map[omis.ProcID]*target), stop: make(chan struct{})} }

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
		return &omis.Refusal{Why: "the monitor is closing down"}
	case p.opened || p.broken != nil:
		return p.broken
	}
	set := tracepoint.NewSet("run programs in the kernel")
	if err := p.open(set); err != nil {
		p.broken = &omis.Refusal{Why: err.Error()}
		return errors.Join(p.broken, set.Close())
	}
	p.opened, p.set = true, set
	p.swept.Go(p.keepRoom)
	return nil
}

func (p *Placer) open(set *tracepoint.Set) (err error) {
	if p.control, err = newControl(set); err != nil {
		return err
	}
	// Word 0 belongs to nobody, so that a word that was never taken is not mistaken
	// for one that was.
	if _, err = p.control.take(); err != nil {
		return err
	}
	if p.layout, err = findLayout(); err != nil {
		return err
	}
	if err := features.HaveBPFLinkUprobeMulti(); errors.Is(err, ebpf.ErrNotSupported) {
		return errors.New("this kernel sets no uprobes for a process by eBPF (it takes Linux 6.6)")
	}
	if p.running, err = set.Map(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: mostProcesses}); err != nil {
		return err
	}
	if err := p.events.open(set, &p.layout, p.control); err != nil {
		return err
	}
	return set.Attach("sched_process_exec", p.onExec())
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
		asm.LoadMem(asm.R2, asm.R0, 0, asm.Word),
		asm.JGE.Imm(asm.R2, controlWords, end),
		asm.LSh.Imm(asm.R2, 3))
	return append(code,
		p.control.address(asm.R1, 0),
		asm.Add.Reg(asm.R1, asm.R2),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreMem(asm.R1, 0, asm.R2, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(end), asm.Return())
}

// enter counts a user of a process. Who came before the process executed another
// program stays with what it was. The caller holds mu.
func (p *Placer) enter(id omis.ProcID) (*target, error) {
	t := p.targets[id]
	if t == nil || t.isGone() {
		gone, err := p.control.take()
		if err != nil {
			return nil, err
		}
		if err := p.running.Put(uint32(id.PID), uint32(gone)); err != nil {
			p.control.give(gone)
			return nil, fmt.Errorf("there are programs in %d processes, there is no room for more: %w", len(p.targets), err)
		}
		t = &target{placer: p, proc: id, gone: gone, sites: make(map[uint64]uprobes)}
		p.targets[id] = t
	}
	t.users++
	return t, nil
}

// leave is the contrary of enter. The caller holds Placer.mu.
func (t *target) leave() {
	if t.users--; t.users > 0 {
		return
	}
	if p := t.placer; p.targets[t.proc] == t {
		delete(p.targets, t.proc)
		_ = p.running.Delete(uint32(t.proc.PID)) // it was put there
	}
	t.placer.control.give(t.gone)
}

// isGone tells whether the process executes another program by now.
func (t *target) isGone() bool { return t.placer.control.at(t.gone).Load() != 0 }

// NewStore: see omis.Placer.
func (p *Placer) NewStore(id omis.ProcID, kind omis.StoreKind) (omis.Store, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ready(); err != nil {
		return nil, err
	}
	t, err := p.enter(id)
	if err != nil {
		return nil, &omis.Refusal{Why: err.Error()}
	}
	s := &store{placer: p, target: t, proc: id, kind: kind, alive: make(map[key]bool)}
	if err := s.open(); err != nil {
		t.leave()
		return nil, &omis.Refusal{Why: fmt.Sprintf("cannot make a table in the kernel: %v", err)}
	}
	p.stores = append(p.stores, s)
	return s, nil
}

// drop forgets a store that is to be closed.
func (p *Placer) drop(s *store) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.stores, s)
	if i < 0 {
		return
	}
	p.stores = slices.Delete(p.stores, i, i+1)
	s.target.leave()
}

// sweepEvery is how often tables are looked after. A process has to begin and end 16,000
// threads in that time for one of them to find no room.
const sweepEvery = 250 * time.Millisecond

// keepRoom keeps tables from filling up with rows of ended threads.
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
		stores := slices.Clone(p.stores)
		p.events.forgetEnded()
		p.mu.Unlock()
		for _, s := range stores {
			s.sweep()
		}
	}
}

// Close frees what is shared. Programs and stores must have been removed.
func (p *Placer) Close() error {
	p.mu.Lock()
	p.closed = true
	opened := p.opened
	p.mu.Unlock()
	if !opened {
		return nil
	}
	close(p.stop)
	p.swept.Wait()
	p.events.records.close()
	return errors.Join(p.control.close(), p.set.Close())
}
