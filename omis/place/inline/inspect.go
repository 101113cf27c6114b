//go:build linux && amd64

package inline

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
)

// The process can write anything into the memory that it shares with the monitor. So the monitor keeps the
// layout of the shared memory in its own memory. It reads the layout from the shared memory only once, when
// it adopts what a former monitor has left. Each number is read once, and checked before it is used. If a
// number is impossible, the memory is damaged: the monitor uses nothing in it, and begins with new memory.

// errDamaged reports contents of shared memory that no monitor has written.
var errDamaged = errors.New("the process has damaged the memory that it shares with the monitor")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errDamaged, fmt.Sprintf(format, args...))
}

// number reads a number of the header, which may be at most most.
func (m *memory) number(at int, most int, what string) (int, error) {
	n := m.word(at).Load()
	if n > uint64(most) {
		return 0, damaged("it has %d %s, and there is room for %d", n, what, most)
	}
	return int(n), nil
}

// readLayout reads from the header how much a former monitor has used.
func (m *memory) readLayout() (err error) {
	if m.used, err = m.number(headerGroups, m.groups, "groups"); err != nil {
		return err
	}
	if m.records.next, err = m.number(headerLedger, m.ledger, "records"); err != nil {
		return err
	}
	if m.program.next, err = m.number(headerSaid, mostPrograms, "programs"); err != nil {
		return err
	}
	copy(m.kinds, m.bytes[headerKinds:])
	return nil
}

// listed is an entry of the directory.
type listed struct {
	cell
	name [maxKey]byte
}

// directory reads the entries of a former monitor.
func (m *memory) directory() ([]listed, error) {
	type place struct{ group, index int }
	var all []listed
	places := make(map[place]bool)
	for entry := range mostCells {
		b := m.bytes[entryAt(entry):][:entrySize]
		if m.word32(entryAt(entry)+entryKind).Load() == 0 {
			continue
		}
		own := [entrySize]byte(b)
		number := func(at int) int { return int(binary.LittleEndian.Uint32(own[at:])) }
		l := listed{cell{entry: entry, kind: cellKind(number(entryKind)), group: number(entryGroup), index: number(entryIndex)}, [maxKey]byte(own[entryKey:])}
		if !m.has(l.cell) || places[place{l.group, l.index}] {
			return nil, damaged("entry %d of its directory cannot be", entry)
		}
		places[place{l.group, l.index}] = true
		all = append(all, l)
	}
	return all, nil
}

// has reports whether a cell is within a group of its kind.
func (m *memory) has(c cell) bool {
	if c.kind == 0 || c.kind == cellRest || c.kind >= cellRest+1 {
		return false
	}
	n := c.kind.groups()
	if c.group < 0 || c.group+n > m.used || m.kinds[c.group] != byte(c.kind) {
		return false
	}
	for _, rest := range m.kinds[c.group+1 : c.group+n] {
		if rest != byte(cellRest) {
			return false
		}
	}
	return c.index >= c.kind.first(c.group) && c.index < c.kind.capacity()
}

// extents is a capability of a ground: it reports which parts of the shared memory were ever written to.
// Reading other parts would make the kernel allocate pages for them.
type extents interface {
	// NextData returns the bounds of the first part at or after from that was written to; ok is false if
	// there is none.
	NextData(from int) (begin, end int, ok bool)
}

// dataIn calls do for each page of a range that may have been written to.
func (m *memory) dataIn(begin, end int, do func(page int)) {
	end = min(end, len(m.bytes))
	begin -= begin % pageSize
	if m.extents != nil {
		for {
			from, to, ok := m.extents.NextData(begin)
			if !ok || from >= end {
				return
			}
			for begin = max(begin, from-from%pageSize); begin < min(max(to, from+1), end); begin += pageSize {
				do(begin)
			}
		}
	}
	const some = 1 << 12 // pages
	var in [some]byte
	for ; begin < end; begin += some * pageSize {
		n := min(some, (end-begin+pageSize-1)/pageSize)
		if m.swaps || !m.resident(begin, in[:n]) {
			for i := range in {
				in[i] = 1
			}
		}
		for i := range n {
			if in[i]&1 != 0 {
				do(begin + i*pageSize)
			}
		}
	}
}

// budget limits how much of its own memory the monitor takes for what a process has in its ledger. It is
// enough for the rows of 500,000 threads, or for 65,000 histograms.
const budget = 1 << 28

// What a record, a block, and the buckets of a record take of the budget.
const (
	costOfRecord  = 512
	costOfBlock   = 96
	costOfBuckets = 8 * program.Buckets
)

// spend takes from the budget.
func (m *memory) spend(cost int) error {
	if m.spent += cost; m.spent > budget {
		return damaged("its ledger is longer than a monitor leaves it")
	}
	return nil
}

// hold locks a target to read its shared memory. The caller defers release, with the result of hold and a
// pointer to its own error. A memory fault, or a runtime error because of wrong contents, then becomes an
// error of this target, and its memory is not read any more.
func (t *target) hold() (before bool) {
	t.mu.Lock()
	return debug.SetPanicOnFault(true)
}

func (t *target) release(before bool, err *error) {
	debug.SetPanicOnFault(before)
	defer t.mu.Unlock()
	if p := recover(); p != nil {
		t.broken = faultOf(p)
		*err = t.broken
	}
}

// guard calls do, and returns a memory fault as an error.
func guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = faultOf(p)
		}
	}()
	return do()
}

// faultOf makes an error of a runtime panic. It does not recover other panics.
func faultOf(p any) error {
	fault, is := p.(runtime.Error)
	if !is {
		panic(p)
	}
	return damaged("%v", fault)
}

// adopt makes the target of a process, with what a former monitor has left there.
func (p *Placer) adopt(id omis.ProcID, ground node.Ground) (t *target, err error) {
	err = guard(func() (err error) {
		if t, err = p.makeTarget(id, ground); err == nil {
			err = t.adopt()
		}
		return err
	})
	if !errors.Is(err, errDamaged) {
		return t, err
	}
	var patches []node.Patched
	if left, ok := ground.(node.Leftover); ok {
		patches = left.Left()
	}
	lost := program.Orphan{Proc: id, What: fmt.Sprintf("%d programs, and all that they have measured: %v", len(patches), err)}
	err = guard(func() (err error) {
		if len(patches) > 0 {
			err = p.patcher.Unpatch(id, patches)
		}
		if err == nil {
			err = unix.Madvise(ground.Shared(), unix.MADV_REMOVE)
		}
		if err == nil {
			t, err = p.makeTarget(id, ground)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	t.lost = []program.Orphan{lost}
	return t, nil
}

func (p *Placer) makeTarget(id omis.ProcID, ground node.Ground) (*target, error) {
	m, err := newMemory(ground.Shared(), ground.Base())
	if err != nil {
		return nil, err
	}
	m.extents, _ = ground.(extents)
	t := &target{placer: p, proc: id, ground: ground, memory: m, users: 1, stores: make(map[*store]bool), taken: make(map[int]bool)}
	t.useClock()
	return t, nil
}
