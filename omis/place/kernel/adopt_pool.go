//go:build linux && amd64

package kernel

import (
	"errors"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"mirador/omis/host/tracepoint"
	"mirador/omis/place/kernel/code"
	"mirador/omis/place/kernel/persist"
)

// reopenPool opens the pool of a former monitor.
func reopenPool(set *tracepoint.Set, f *code.Form, state *persist.State) (*pool, error) {
	p := poolWith(f, state)
	names := map[string]**ebpf.Map{persist.Index: &p.Index, persist.Chunks: &p.Chunks, persist.Ring: &p.Ring}
	if f.Deep {
		names[persist.Deep] = &p.Deep
	}
	for name, to := range names {
		m, err := state.Folder.Map(p.name(name))
		if err != nil {
			return nil, err
		}
		set.Add(m)
		*to = m
	}
	if err := p.openPassing(set); err != nil {
		return nil, err
	}
	var err error
	if p.ring.bytes, err = mapShared(p.Ring, ringBytes); err != nil {
		return nil, err
	}
	return p, p.reopenChunks()
}

func (p *pool) reopenChunks() error {
	for {
		name := p.name(persist.Chunk, len(p.memory))
		if !p.state.Folder.Has(name) {
			return nil
		}
		m, err := p.state.Folder.Map(name)
		if err != nil {
			return err
		}
		b, err := mapShared(m, int(p.Form.ChunkSize()))
		if err == nil {
			err = p.Chunks.Put(uint32(len(p.memory)), m) // the monitor may have been killed before it did this
		}
		if err := errors.Join(err, m.Close()); err != nil {
			return err
		}
		p.memory = append(p.memory, b)
	}
}

// doubt is how long a row without an owner may still belong to a program. The program has taken the row
// from the ring just before, and writes the owner a moment later, unless its processor is suspended.
const doubt = 2 * time.Second

// recount assigns adopted rows to their stores. Rows in the ring are free; discover finds them when
// programs take them.
func (p *pool) recount() {
	p.ring.seen = p.ring.head()
	ready := make(map[uint32]bool)
	for i, tail := p.ring.seen, p.ring.tail(); i < tail; i++ {
		ready[p.ring.at(i)] = true
	}
	p.doubtEnd = time.Now().Add(doubt)
	onPage := make(map[code.Key]bool)
	for _, s := range p.stores {
		for _, k := range s.onPage {
			onPage[k] = true
		}
		s.onPage = nil
	}
	for n := range uint32(len(p.memory)) << p.Form.Chunk {
		switch r := p.row(n); {
		case ready[n]:
		case r.Word(code.RowOwner) == 0:
			p.doubtful = append(p.doubtful, n)
		case p.stores[r.Key().Cell] == nil || onPage[r.Key()]:
			p.known++
			p.release(n)
		default:
			p.claim(n)
		}
	}
}

// settleDoubts assigns doubtful rows that have an owner now, and after the end of doubt frees the others.
// The caller holds mu.
func (p *pool) settleDoubts() {
	if len(p.doubtful) == 0 {
		return
	}
	p.doubtful = slices.DeleteFunc(p.doubtful, p.claim)
	if time.Now().Before(p.doubtEnd) {
		return
	}
	for _, n := range p.doubtful {
		p.row(n).Clear() // the monitor may have been killed in the middle of Clear
	}
	p.free = append(p.free, p.doubtful...)
	p.doubtful = nil
}
