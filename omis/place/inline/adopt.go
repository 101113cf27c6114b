//go:build linux && amd64

package inline

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"mirador/omis/host/proc"
	"mirador/omis/node"
	"mirador/omis/program"
)

// The next monitor finds what a former one has left in a process: in the memory that they shared, and in
// the code of the process. Stores and programs stay unused until a request adopts them.

// left is a program that no request has adopted yet.
type left struct {
	said
	patch node.Patched
}

// orphan is a store that no request has adopted, or can adopt, because it was not meant to outlive its
// monitor.
type orphan struct {
	store *store
	kind  program.StoreKind
	name  [maxKey]byte
}

func (o *orphan) word() string {
	word, _, _ := bytes.Cut(o.name[:], []byte{0})
	return string(word)
}

// adopt opens what is in the memory.
func (t *target) adopt() error {
	var patches []node.Patched
	if left, ok := t.ground.(node.Leftover); ok {
		patches = left.Left()
	}
	if !t.memory.adopted {
		return t.takeAway(patches)
	}
	if err := t.adoptStores(); err != nil {
		return err
	}
	t.adoptSlots()
	if err := t.adoptPrograms(patches); err != nil {
		return err
	}
	return t.retire()
}

func (t *target) takeAway(patches []node.Patched) error {
	if len(patches) == 0 {
		return nil
	}
	return t.placer.patcher.Unpatch(t.proc, patches)
}

// adoptStores reads the directory and the ledger.
func (t *target) adoptStores() error {
	m := t.memory
	entries, err := m.directory()
	if err != nil {
		return err
	}
	records, err := m.audit()
	if err != nil {
		return err
	}
	var sums []listed
	for _, l := range entries {
		if l.kind == cellSums {
			sums = append(sums, l)
			continue
		}
		s := &store{target: t, kind: l.kind.storeKind(), cell: l.cell, past: records[l.entry]}
		o := orphan{s, s.kind, l.name}
		s.key = o.word()
		t.orphans = append(t.orphans, o)
	}
	t.joinSums(sums)
	m.resume(entries)
	return nil
}

// joinSums joins cells of sums to the stores of the cells beside them. If the monitor died before it made
// the store's first cell, there is none.
func (t *target) joinSums(sums []listed) {
	stores := make(map[[maxKey]byte]*store)
	for _, o := range slices.Backward(t.orphans) {
		if o.kind == program.StoreSums {
			stores[o.name] = o.store
		}
	}
	for _, l := range sums {
		if s := stores[l.name]; s != nil && s.other == nil {
			s.other = &l.cell
			continue
		}
		t.orphans = append(t.orphans, orphan{store: &store{target: t, kind: program.StoreSums, cell: l.cell}})
	}
}

// adoptSlots finds the slots that are taken.
func (t *target) adoptSlots() {
	m := t.memory
	t.seen = m.word(headerClaimed).Load()
	for i := range m.slots {
		m.word32(claimsAt + 4*i).Store(0)
	}
	t.doubtful = time.Now().Add(doubt)
	t.lookRound()
}

// lookEvery is how often all slots are examined while some may be missing in the claims.
const lookEvery = 10 * time.Millisecond

// doubt is how long after the adoption all slots are examined: a thread may have been about to claim a slot
// when the claims were cleared.
const doubt = 2 * time.Second

// lookRound finds the slots that are taken without the claims. A thread that is about to take a slot has
// not written the time yet. Of thousands of slots few were ever taken, so lookRound reads only pages that
// were written to.
func (t *target) lookRound() {
	m := t.memory
	t.looked = time.Now()
	first := m.slotAt(0)
	m.dataIn(first, m.slotAt(m.slots), func(page int) {
		slot := (page - first) / roomSize
		if at := m.slotAt(slot); at == page && slot != crowd && m.word32(at+slotTID).Load() != 0 && m.word(at+slotFirst).Load() != 0 {
			t.admit(slot)
		}
	})
}

// adoptPrograms matches installed code with the descriptions of programs. Descriptions without code, and
// code without a description, are removed.
func (t *target) adoptPrograms(patches []node.Patched) error {
	at := make(map[uint64]node.Patched)
	for _, p := range patches {
		at[p.Switch()] = p
	}
	filters := make(map[int]bool)
	for _, s := range t.memory.allSaid() {
		p := at[s.change]
		if p == nil || p.Addr() != s.addr {
			t.memory.unsay(&s)
			continue
		}
		if s.filter >= mostFilters || s.filter >= 0 && filters[s.filter] {
			return damaged("two programs have filter %d, or it is beyond all", s.filter)
		}
		filters[s.filter] = true
		delete(at, s.change)
		t.left = append(t.left, &left{said: s, patch: p})
	}
	t.adoptFilters()
	return t.takeAway(slices.Collect(maps.Values(at)))
}

func (t *target) adoptFilters() {
	m := t.memory
	used := make(map[int]bool)
	for _, l := range t.left {
		if l.filter < 0 {
			continue
		}
		used[l.filter] = true
		f := filter{number: l.filter}
		for i := range mostNamed {
			if tid := int(m.filterWord(l.filter, i).Load()); tid != 0 {
				started, _ := proc.ThreadStart(t.proc.PID, tid) // a thread that has ended is removed from the filter soon
				f.threads = append(f.threads, thread{tid, started})
			} else {
				f.threads = append(f.threads, thread{})
			}
		}
		t.filters = append(t.filters, f)
		m.filters.next = max(m.filters.next, l.filter+1)
	}
	for number := range m.filters.next {
		if !used[number] {
			m.filters.give(number)
		}
	}
}

// claim adopts a program that does the same at the same address. The caller holds mu.
func (t *target) claim(addr uint64, what text) *left {
	for i, l := range t.left {
		if l.addr == addr && l.text == what {
			t.left = slices.Delete(t.left, i, i+1)
			return l
		}
	}
	return nil
}

// dismiss removes programs that no request has adopted. The caller holds mu.
func (t *target) dismiss(list []*left) error {
	var patches []node.Patched
	for _, l := range list {
		patches = append(patches, l.patch)
	}
	err := t.takeAway(patches)
	for _, l := range slices.Clone(list) {
		t.left = slices.DeleteFunc(t.left, func(other *left) bool { return other == l })
		t.memory.unsay(&l.said)
		t.unfilter(l.filter)
	}
	return err
}
