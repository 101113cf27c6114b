//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"mirador/omis/host/tracepoint"
	"mirador/omis/place/kernel/code"
	"mirador/omis/place/kernel/persist"
)

// pool is memory for rows of one kind. Programs and the monitor share it, so that reading rows takes
// no system call. It grows by chunks. Free rows are in a ring, which also records the order in which
// programs take them.
type pool struct {
	code.Pool
	ring  ring
	state *persist.State // nil: the pool ends with the monitor

	mu      sync.Mutex
	memory  [][]byte // the chunks
	free    []uint32 // numbers of free rows that are not in the ring
	pending []uint32 // rows that a program took and to which it has not written the owner yet
	stores  map[uint32]*store
	known   int // rows that belong to stores
	sweepAt int // when known reaches this number, look for ended threads

	doubtful []uint32  // adopted rows without an owner: free, or taken just before
	doubtEnd time.Time // when rows that have no owner by then are free
}

func newPool(set *tracepoint.Set, f *code.Form, state *persist.State) (_ *pool, err error) {
	p := poolWith(f, state)
	p.Index, err = set.Map(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 16, ValueSize: 4, MaxEntries: code.MostChunks << f.Chunk, Flags: unix.BPF_F_NO_PREALLOC})
	if err != nil {
		return nil, err
	}
	p.Chunks, err = set.Map(&ebpf.MapSpec{
		Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4, MaxEntries: code.MostChunks, InnerMap: p.chunkSpec(),
	})
	if err != nil {
		return nil, err
	}
	if f.Deep {
		p.Deep, err = set.Map(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: code.DeepSize, MaxEntries: mostDeep, Flags: unix.BPF_F_NO_PREALLOC})
		if err != nil {
			return nil, err
		}
	}
	if err := p.openPassing(set); err != nil {
		return nil, err
	}
	if p.Ring, p.ring.bytes, err = sharedArray(set, ringBytes); err == nil && state != nil {
		err = p.pin()
	}
	return p, err
}

func poolWith(f *code.Form, state *persist.State) *pool {
	return &pool{Pool: code.Pool{Form: f}, state: state, stores: make(map[uint32]*store), sweepAt: f.WorthSweeping()}
}

// openPassing makes the maps whose contents need not outlive the monitor.
func (p *pool) openPassing(set *tracepoint.Set) (err error) {
	p.Recent, err = set.Map(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: code.RecentSize, MaxEntries: 1})
	if err == nil && p.Form.Deep {
		p.Blank, err = set.Map(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: code.DeepSize, MaxEntries: 1})
	}
	return err
}

// mostDeep is the most threads that can have more open intervals than a row holds.
const mostDeep = 1 << 14

func (p *pool) chunkSpec() *ebpf.MapSpec {
	return &ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: p.Form.ChunkSize(), MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE}
}

// name is the name of a pinned object of the pool.
func (p *pool) name(name string, numbers ...int) string {
	return persist.Name(name, slices.Insert(numbers, 0, int(p.Form.Kind))...)
}

// pin pins the maps, the index last: a pool without a pinned index was never used. Chunks are pinned
// when they are made.
func (p *pool) pin() error {
	for _, m := range []struct {
		name string
		m    *ebpf.Map
	}{{persist.Deep, p.Deep}, {persist.Chunks, p.Chunks}, {persist.Ring, p.Ring}, {persist.Index, p.Index}} {
		if m.m == nil {
			continue
		}
		if err := m.m.Pin(p.state.Folder.Path(p.name(m.name))); err != nil {
			return err
		}
	}
	return nil
}

// row returns the row with a number.
func (p *pool) row(n uint32) code.Row {
	at := int(n&(1<<p.Form.Chunk-1)) * p.Form.Size
	return code.Row{Form: p.Form, B: p.memory[n>>p.Form.Chunk][at : at+p.Form.Size]}
}

// grow adds a chunk. The caller holds mu.
func (p *pool) grow() error {
	if len(p.memory) == code.MostChunks {
		return fmt.Errorf("there is no room in the kernel for more than %d rows", code.MostChunks<<p.Form.Chunk)
	}
	m, err := ebpf.NewMap(p.chunkSpec())
	if err != nil {
		return err
	}
	defer m.Close() // the map of maps keeps it, and the mapping
	b, err := mapShared(m, int(p.Form.ChunkSize()))
	if err != nil {
		return err
	}
	if p.state != nil {
		err = m.Pin(p.state.Folder.Path(p.name(persist.Chunk, len(p.memory))))
	}
	if err == nil {
		err = p.Chunks.Put(uint32(len(p.memory)), m)
	}
	if err != nil {
		return errors.Join(err, unix.Munmap(b))
	}
	first := uint32(len(p.memory)) << p.Form.Chunk
	p.memory = append(p.memory, b)
	for n := range uint32(1) << p.Form.Chunk {
		p.free = append(p.free, first+n)
	}
	return nil
}

// provide adds free rows to the ring until it has n.
func (p *pool) provide(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.provideLocked(n)
}

func (p *pool) provideLocked(n int) error {
	p.discover() // push must not overwrite entries that are not read yet
	n = min(n, code.RingSize)
	for p.ring.ready() < n {
		if len(p.free) == 0 {
			if missing := n - p.ring.ready(); missing <= min(p.Form.Spare/2, len(p.doubtful)) {
				return nil // settleDoubts will soon free the doubtful rows
			}
			if err := p.grow(); err != nil {
				return err
			}
		}
		last := len(p.free) - 1
		p.ring.push(p.free[last])
		p.free = p.free[:last]
	}
	return nil
}

// discover finds the rows that programs have taken since the last call. The caller holds mu.
func (p *pool) discover() {
	p.settleDoubts()
	p.pending = slices.DeleteFunc(p.pending, p.claim)
	for n := range p.ring.taken() {
		if !p.claim(n) {
			p.pending = append(p.pending, n)
		}
	}
}

// claim adds a row to the store that it belongs to. It returns false if the row has no owner yet.
func (p *pool) claim(n uint32) bool {
	owner := p.row(n).Word(code.RowOwner)
	if owner == 0 {
		return false
	}
	s := p.stores[uint32(owner>>32)]
	if s == nil { // the program could not use the row, or the store is closed
		p.row(n).Clear()
		p.free = append(p.free, n)
		return true
	}
	if s.rows == nil {
		s.rows = s.room[:0] // no allocation: ten thousand stores may get their first row at a time
	}
	s.rows = append(s.rows, n)
	p.known++
	return true
}

// release frees a row of a store. No program can find the row afterwards. The caller holds mu.
func (p *pool) release(n uint32) {
	r := p.row(n)
	_ = p.Index.Delete(r.Key()) // the index may have been full when the thread took the row
	if p.Deep != nil {
		_ = p.Deep.Delete(n) // few rows have an entry
	}
	r.Clear()
	p.free = append(p.free, n)
	p.known--
}

// sweep frees rows of ended threads if there are many rows, and refills the ring.
func (p *pool) sweep() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.stores) == 0 {
		return nil
	}
	p.discover()
	if p.known >= p.sweepAt {
		ended := make(map[*target]func(code.Thread) bool)
		for _, s := range p.stores {
			if ended[s.target] == nil {
				ended[s.target] = s.target.ended()
			}
			s.retire(ended[s.target])
		}
		for t, hasEnded := range ended {
			t.forgetEnded(hasEnded)
		}
		p.sweepAt = max(p.Form.WorthSweeping(), 2*p.known)
	}
	return p.provideLocked(p.Form.Spare)
}

func (p *pool) close() error {
	var errs []error
	for _, b := range p.memory {
		errs = append(errs, unix.Munmap(b))
	}
	return errors.Join(append(errs, p.ring.close())...)
}
