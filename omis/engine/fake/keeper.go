package fake

import (
	"fmt"
	"slices"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
)

// Kill kills the monitor and returns the placement of the next monitor. It has copies, without
// an owner, of the kept stores and of the programs that use only these. The killed monitor's
// goroutines may still use its own stores and programs, without effect on the copies.
func (p *Placer) Kill() (*Placer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := &Placer{Node: p.Node, name: p.name, Refuse: p.Refuse, Started: p.Started, Blind: p.Blind}
	kept := make(map[program.Store]*store)
	for _, s := range p.stores {
		if s.key != "" {
			left := *s
			left.placer, left.orphan = next, true
			kept[s] = &left
			next.stores = append(next.stores, &left)
		}
	}
	for _, pl := range p.placed {
		if pl.removed {
			continue
		}
		if err := pl.cancel(); err != nil {
			return nil, err
		}
		pl.cancel = func() error { return nil }
		left := &placed{placer: next, watch: pl.watch, active: pl.active, gone: pl.gone, orphan: true}
		for _, op := range pl.steps {
			if op.Source != nil {
				if kept[op.Source] == nil {
					break
				}
				op.Source = kept[op.Source]
			}
			if s := kept[op.Store]; s != nil {
				op.Store = s
				left.steps = append(left.steps, op)
			}
		}
		if len(left.steps) < len(pl.steps) {
			continue // a step uses a store that is not kept
		}
		var err error
		if left.cancel, err = p.Watch(left.watch, left.hit); err != nil {
			return nil, err
		}
		next.placed = append(next.placed, left)
	}
	return next, nil
}

// adopt finds an equal program that a killed monitor left, nil if there is none.
func (p *Placer) adopt(w node.Watch, steps program.Program) *placed {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pl := range p.placed {
		same := pl.watch.Proc == w.Proc && pl.watch.Addr == w.Addr && slices.Equal(pl.watch.Threads, w.Threads) && slices.Equal(pl.steps, steps)
		if pl.orphan && !pl.gone && !pl.removed && same {
			pl.orphan = false
			return pl
		}
	}
	return nil
}

func (p *Placer) Keep(id omis.ProcID, kind program.StoreKind, key string) (program.Store, error) {
	if s, err := p.Recall(id, kind, key); s != nil || err != nil {
		return s, err
	}
	s, err := p.NewStore(id, kind)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.(*store).key = key
	return s, nil
}

func (p *Placer) Recall(id omis.ProcID, kind program.StoreKind, key string) (program.Store, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked == nil {
		p.asked = make(map[omis.ProcID]bool)
	}
	p.asked[id] = true
	for _, s := range p.stores {
		if s.orphan && s.proc == id && s.kind == kind && s.key == key {
			s.orphan = false
			return s, nil
		}
	}
	return nil, nil
}

func (p *Placer) Settle() ([]program.Orphan, error) {
	return p.settle(func(id omis.ProcID) bool { return p.asked[id] })
}

func (p *Placer) Meet(id omis.ProcID) ([]program.Orphan, error) {
	return p.settle(func(other omis.ProcID) bool { return other == id })
}

func (p *Placer) settle(in func(omis.ProcID) bool) ([]program.Orphan, error) {
	p.mu.Lock()
	var list []program.Orphan
	var ended []*placed
	for _, pl := range p.placed {
		if pl.orphan && !pl.removed && in(pl.watch.Proc) {
			list = append(list, program.Orphan{Proc: pl.watch.Proc, What: fmt.Sprintf("a program at %#x", pl.watch.Addr)})
			ended = append(ended, pl)
		}
	}
	p.stores = slices.DeleteFunc(p.stores, func(s *store) bool { return s.orphan && in(s.proc) })
	p.mu.Unlock()
	for _, pl := range ended {
		if err := pl.remove(); err != nil {
			return nil, err
		}
	}
	return list, nil
}
