//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/tracepoint"
	"mirador/omis/place/kernel/code"
	"mirador/omis/place/kernel/persist"
	"mirador/omis/program"
)

// memory is what the monitor shares with its programs in the kernel: parameters in the slab, and
// rows in pools. mu guards it, and also the tables of uprobes, events and leftovers.
type memory struct {
	mu      sync.Mutex // taken after uprobes.planting, and before the lock of a pool
	layout  code.Layout
	set     *tracepoint.Set // frees the maps and links
	slab    *slab
	pools   [code.RowKinds]*pool // nil for kinds that nothing uses yet
	running *ebpf.Map            // process id -> unit that says whether the process executes another program
	targets map[omis.ProcID]*target
	keeper  *keeper
	zero    int64 // the kernel's monotonic clock at the time 0 of the clock that dates records
}

// mostProcesses is the most processes that can have programs at a time.
const mostProcesses = 1 << 12

// open makes what all programs share. The caller holds mu.
func (m *memory) open() (err error) {
	if m.slab, err = newSlab(m.set); err != nil {
		return err
	}
	if m.running, err = m.set.Map(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: mostProcesses}); err != nil {
		return err
	}
	exec, err := m.set.Link("sched_process_exec", m.tables().AtExec(m.running))
	if err == nil {
		m.keeper.pinShared(m, exec)
	}
	return err
}

// reopen makes what all programs share from the objects that another monitor pinned. The caller
// holds mu.
func (m *memory) reopen(folder *persist.Folder) error {
	words, err := folder.Map(persist.Slab)
	if err != nil {
		return err
	}
	m.set.Add(words)
	b, err := mapShared(words, code.SlabUnits*code.UnitSize)
	if err != nil {
		return err
	}
	m.slab = &slab{Slab: code.Slab{Words: words, Bytes: b}, next: 1}
	if m.running, err = folder.Map(persist.Running); err != nil {
		return err
	}
	m.set.Add(m.running)
	exec, err := folder.Link(persist.Exec)
	if err != nil {
		return err
	}
	m.set.Add(exec)
	for kind := range code.RowKinds {
		if folder.Has(persist.Name(persist.Index, int(kind))) {
			if m.pools[kind], err = reopenPool(m.set, code.FormOf(kind), m.keeper.state); err != nil {
				return err
			}
		}
	}
	return nil
}

// tables returns the layout, the slab and the pools, to which the code of programs refers.
func (m *memory) tables() *code.Tables {
	t := &code.Tables{Layout: &m.layout, Slab: &m.slab.Slab, Pools: new(code.Pools)}
	for kind, q := range m.pools {
		if q != nil {
			t.Pools[kind] = &q.Pool
		}
	}
	return t
}

// sharedArray makes an array of one element, and maps it into the monitor.
func sharedArray(set *tracepoint.Set, size uint32) (*ebpf.Map, []byte, error) {
	m, err := set.Map(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: size, MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE})
	if err != nil {
		return nil, nil, err
	}
	b, err := mapShared(m, int(size))
	return m, b, err
}

func mapShared(m *ebpf.Map, size int) ([]byte, error) {
	b, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("cannot share memory with programs in the kernel: %w", err)
	}
	return b, nil
}

// newStore makes a store that ends with the monitor. The caller holds mu.
func (m *memory) newStore(id omis.ProcID, kind program.StoreKind) (*store, error) {
	t, err := m.enter(id)
	if err != nil {
		return nil, program.Refuse(err)
	}
	s := &store{memory: m, target: t}
	if err := s.open(kind); err != nil {
		t.leave()
		return nil, &program.Refusal{Why: fmt.Sprintf("cannot make a table in the kernel: %v", err)}
	}
	return s, nil
}

// newTrail makes a store for records. Its pool depends on the number of records, which the program
// says. The caller holds mu.
func (m *memory) newTrail(id omis.ProcID) (program.Store, error) {
	t, err := m.enter(id)
	if err != nil {
		return nil, program.Refuse(err)
	}
	return &trail{store: &store{memory: m, target: t, notes: &notes{read: make(map[uint32]*progress)}}}, nil
}

// poolOf returns the pool for a kind of row, and makes it if there is none. Pools of records do not
// outlive the monitor. The caller holds mu.
func (m *memory) poolOf(kind program.StoreKind) (*pool, error) {
	if m.pools[kind] != nil {
		return m.pools[kind], nil
	}
	f, state := code.FormOf(kind), m.keeper.state
	if f.Notes > 0 {
		state = nil
	}
	made, err := newPool(m.set, f, state)
	if err != nil {
		return nil, err
	}
	if err := made.provide(f.Spare); err != nil {
		return nil, errors.Join(err, made.close())
	}
	m.pools[kind] = made
	return made, nil
}

// openPools returns the pools that are in use.
func (m *memory) openPools() []*pool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.pools[:]), func(q *pool) bool { return q == nil })
}

// provide makes free rows ready for new programs, in addition to those for new threads. The caller holds
// mu.
func (m *memory) provide(fresh int) {
	for _, q := range m.pools {
		if q != nil {
			_ = q.provide(q.Form.Spare + fresh) // hits that find no row are counted
		}
	}
}

// enter counts a user of a process. If the process has executed another program, new users get a
// new target; former users keep the old one. The caller holds mu.
func (m *memory) enter(id omis.ProcID) (*target, error) {
	t := m.targets[id]
	if t == nil || t.isGone() {
		gone, err := m.slab.take(1)
		if err != nil {
			return nil, err
		}
		if err := m.running.Put(uint32(id.PID), uint32(gone)); err != nil {
			m.slab.give(gone, 1)
			return nil, fmt.Errorf("there are programs in %d processes, there is no room for more: %w", len(m.targets), err)
		}
		t = newTarget(m, id, gone)
		m.targets[id] = t
		m.keeper.put(persist.Targets, gone, persist.Target{Proc: id})
	}
	t.users++
	return t, nil
}

// current returns the target of a process, nil if nothing of ours is in the program that it
// executes. The caller holds mu.
func (m *memory) current(id omis.ProcID) *target {
	if t := m.targets[id]; t != nil && !t.isGone() {
		return t
	}
	return nil
}

// comparisons is the number of times that two clocks are compared.
const comparisons = 8

// dateBy sets the clock that dates records. It must run at the rate of the kernel's monotonic clock.
func (m *memory) dateBy(now func() int64) {
	least := int64(math.MaxInt64)
	for range comparisons {
		before := monotonic()
		read := now()
		after := monotonic()
		if after-before < least {
			least, m.zero = after-before, before+(after-before)/2-read
		}
	}
}

func monotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // every Linux has this clock
	return ts.Nano()
}
