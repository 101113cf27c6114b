//go:build linux && amd64

package inline

import (
	"errors"
	"sync"
	"time"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/node"
	"mirador/omis/place/clock"
	"mirador/omis/program"
)

// Name is the name of this placement.
const Name = "inline"

// Placer places programs in the code of processes.
type Placer struct {
	patcher node.Patcher
	clock   *ratio
	now     func() (clock.Clock, error)

	mu      sync.Mutex
	closed  bool
	settled bool // Settle was called
	targets map[omis.ProcID]*target
	stop    chan struct{}
	tending bool
	tended  sync.WaitGroup
}

var _ program.Placer = (*Placer)(nil)

// New makes a placer. The patcher puts its code into processes.
func New(patcher node.Patcher) *Placer { return NewWith(patcher, clock.Now) }

// NewWith makes a placer whose code reads the clock that now returns.
func NewWith(patcher node.Patcher, now func() (clock.Clock, error)) *Placer {
	return &Placer{patcher: patcher, clock: ofMachine, now: now, targets: make(map[omis.ProcID]*target), stop: make(chan struct{})}
}

// Name: see program.Placer.
func (*Placer) Name() string { return Name }

var _ program.Rester = (*Placer)(nil)

// RestsFree: see program.Rester. A thread only tests a byte.
func (*Placer) RestsFree() bool { return true }

// Check reports why time cannot be measured inline on this machine.
func (p *Placer) Check() error {
	_, err := p.now()
	return err
}

// enter finds the target of a process, and adds a user. If the process has executed another program, new
// users get a new target; former users keep the old one.
func (p *Placer) enter(id omis.ProcID) (*target, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, &program.Refusal{Why: "the monitor is closing down"}
	}
	t := p.targets[id]
	if t != nil && t.ground.Gone() {
		p.part(t)
		t = nil
	}
	if t == nil {
		var err error
		if t, err = p.newTarget(id); err != nil {
			return nil, err
		}
		p.targets[id] = t
		p.tend()
		if p.settled {
			if _, err = t.settle(); err != nil {
				return nil, program.Refuse(err)
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.users++
	return t, nil
}

func (p *Placer) newTarget(id omis.ProcID) (*target, error) {
	ground, err := p.patcher.Ground(id)
	if err != nil {
		return nil, err
	}
	t, err := p.adopt(id, ground)
	if err != nil {
		return nil, errors.Join(program.Refuse(err), ground.Close())
	}
	return t, nil
}

// part forgets a target that is gone; its users still have it. The caller holds mu.
func (p *Placer) part(t *target) {
	delete(p.targets, t.proc)
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.leave() // it fails if memory cannot be unmapped, which cannot be helped
}

// sameNumbers reports why the threads of a process have other numbers for themselves than the monitor has
// for them.
func sameNumbers(pid int) error {
	same, err := proc.SameNumbers(pid)
	if err == nil && !same {
		err = &program.Refusal{Why: "the process lives in a pid namespace of its own, in which its threads have other numbers"}
	}
	return err
}

// NewStore: see program.Placer.
func (p *Placer) NewStore(id omis.ProcID, kind program.StoreKind) (program.Store, error) {
	return p.Keep(id, kind, "")
}

// tend starts the goroutine that attends to the slots of all targets. The caller holds mu.
func (p *Placer) tend() {
	if !p.tending {
		p.tending = true
		p.tended.Go(p.attendAll)
	}
}

func (p *Placer) attendAll() {
	ticker := time.NewTicker(attendEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
		}
		for _, t := range p.all() {
			_ = t.attend() // slots whose memory could not be freed are used again all the same
		}
	}
}

// all returns the targets whose processes run, and forgets the others.
func (p *Placer) all() (list []*target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.targets {
		if t.ground.Gone() {
			p.part(t)
			continue
		}
		list = append(list, t)
	}
	return list
}

// Close frees what programs share. The caller has removed all programs and closed all stores.
func (p *Placer) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	tending := p.tending
	p.mu.Unlock()
	if tending {
		close(p.stop)
		p.tended.Wait()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, t := range p.targets {
		t.mu.Lock()
		errs = append(errs, t.leave())
		t.mu.Unlock()
	}
	clear(p.targets)
	return errors.Join(errs...)
}
