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
)

// pool is memory for rows of one kind, which programs and the monitor share: whoever
// reads rows needs no system call. It grows by chunks. The rows that programs may take
// next lie in a ring, where they also show in which order they were taken.
type pool struct {
	form   *form
	index  *ebpf.Map // key -> number of the row
	deep   *ebpf.Map // number of a row -> its intervals beyond those that are near
	blank  *ebpf.Map // what is new in there
	chunks *ebpf.Map // of maps with rows
	recent *ebpf.Map // numbers of rows that were found lately
	ring   ring
	estate *estate // nil: it ends with the monitor

	mu      sync.Mutex
	memory  [][]byte // the chunks
	free    []uint32 // numbers of rows that are not in the ring
	pending []uint32 // taken by programs that do not say yet for whom
	stores  map[uint32]*store
	known   int // rows of stores
	sweepAt int // so many rows make it worth while to look for ended threads

	doubtful []uint32  // of a former monitor: free, or taken by a program that does not say yet for whom
	doubtEnd time.Time // when those that say nothing until then are free
}

// mostChunks is how many chunks of rows a pool has.
const mostChunks = 1 << 7

func newPool(set *tracepoint.Set, f *form, e *estate) (p *pool, err error) {
	p = &pool{form: f, estate: e, stores: make(map[uint32]*store), sweepAt: f.worthSweeping()}
	p.index, err = set.Map(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 16, ValueSize: 4, MaxEntries: mostChunks << f.chunk, Flags: unix.BPF_F_NO_PREALLOC})
	if err != nil {
		return nil, err
	}
	p.chunks, err = set.Map(&ebpf.MapSpec{
		Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4, MaxEntries: mostChunks, InnerMap: p.chunkSpec(),
	})
	if err != nil {
		return nil, err
	}
	if f.deep {
		p.deep, err = set.Map(&ebpf.MapSpec{
			Type: ebpf.Hash, KeySize: 4, ValueSize: 16 * (maxOpen - near), MaxEntries: mostDeep, Flags: unix.BPF_F_NO_PREALLOC,
		})
		if err != nil {
			return nil, err
		}
	}
	if err := p.openPassing(set); err != nil {
		return nil, err
	}
	if p.ring, err = newRing(set); err == nil && e != nil {
		err = p.bequeath(e)
	}
	return p, err
}

// openPassing makes what programs need, but says nothing that matters to others.
func (p *pool) openPassing(set *tracepoint.Set) (err error) {
	p.recent, err = set.Map(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4 * recentSize, MaxEntries: 1})
	if err == nil && p.form.deep {
		p.blank, err = set.Map(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 16 * (maxOpen - near), MaxEntries: 1})
	}
	return err
}

// mostDeep is how many threads are deep in recursions at a time.
const mostDeep = 1 << 14

func (p *pool) chunkSpec() *ebpf.MapSpec {
	return &ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: p.form.chunkSize(), MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE}
}

// row is the row of a number.
func (p *pool) row(n uint32) row {
	at := int(n&(1<<p.form.chunk-1)) * p.form.size
	return row{p.form, p.memory[n>>p.form.chunk][at : at+p.form.size]}
}

// grow adds a chunk. The caller holds mu.
func (p *pool) grow() error {
	if len(p.memory) == mostChunks {
		return fmt.Errorf("there is no room in the kernel for more than %d rows", mostChunks<<p.form.chunk)
	}
	m, err := ebpf.NewMap(p.chunkSpec())
	if err != nil {
		return err
	}
	defer m.Close() // the map of maps keeps it, and the mapping
	b, err := mapShared(m, p.form.chunkSize())
	if err != nil {
		return err
	}
	if p.estate != nil {
		err = m.Pin(p.estate.folder.Path(nameOf(chunkName, int(p.form.kind), len(p.memory))))
	}
	if err == nil {
		err = p.chunks.Put(uint32(len(p.memory)), m)
	}
	if err != nil {
		return errors.Join(err, unix.Munmap(b))
	}
	first := uint32(len(p.memory)) << p.form.chunk
	p.memory = append(p.memory, b)
	for n := range uint32(1) << p.form.chunk {
		p.free = append(p.free, first+n)
	}
	return nil
}

// provide has enough rows ready for programs.
func (p *pool) provide(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.provideLocked(n)
}

func (p *pool) provideLocked(n int) error {
	p.discover() // or the ring might be written over
	n = min(n, ringSize)
	for p.ring.ready() < n {
		if len(p.free) == 0 {
			if missing := n - p.ring.ready(); missing <= min(p.form.spare/2, len(p.doubtful)) {
				return nil // they come in a moment: see settleDoubts
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

// discover finds the rows that programs have taken since the last time. The caller
// holds mu.
func (p *pool) discover() {
	p.settleDoubts()
	p.pending = slices.DeleteFunc(p.pending, p.claim)
	for n := range p.ring.taken() {
		if !p.claim(n) {
			p.pending = append(p.pending, n)
		}
	}
}

// claim gives a row to its store; false: it does not say yet which one that is.
func (p *pool) claim(n uint32) bool {
	owner := p.row(n).word(rowOwner)
	if owner == 0 {
		return false
	}
	s := p.stores[uint32(owner>>32)]
	if s == nil { // it was taken in vain
		p.row(n).clear()
		p.free = append(p.free, n)
		return true
	}
	if s.rows == nil {
		s.rows = s.room[:0] // ten thousand may come at a time
	}
	s.rows = append(s.rows, n)
	p.known++
	return true
}

// release takes a row from its owner: no program can come to it any more. The caller
// holds mu.
func (p *pool) release(n uint32) {
	r := p.row(n)
	// There is none where the thread found no room in the index.
	_ = p.index.Delete(r.key())
	if p.deep != nil {
		_ = p.deep.Delete(n)
	}
	r.clear()
	p.free = append(p.free, n)
	p.known--
}

// sweep takes rows of ended threads out, where there are many rows, and has enough of
// them ready.
func (p *pool) sweep() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.stores) == 0 {
		return nil
	}
	p.discover()
	if p.known >= p.sweepAt {
		ended := make(map[*target]func(thread) bool)
		for _, s := range p.stores {
			if ended[s.target] == nil {
				ended[s.target] = s.target.ended()
			}
			s.retire(ended[s.target])
		}
		for t, hasEnded := range ended {
			t.forgetEnded(hasEnded)
		}
		p.sweepAt = max(p.form.worthSweeping(), 2*p.known)
	}
	return p.provideLocked(p.form.spare)
}

func (p *pool) close() error {
	var errs []error
	for _, b := range p.memory {
		errs = append(errs, unix.Munmap(b))
	}
	return errors.Join(append(errs, p.ring.close())...)
}
