//go:build linux && amd64

package inline

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/node"
	"mirador/omis/place/clock"
	"mirador/omis/program"
)

// target is a process that programs are placed in.
type target struct {
	placer *Placer
	proc   omis.ProcID
	ground node.Ground

	mu       sync.Mutex
	memory   *memory
	users    int // stores, programs, and the placer itself
	stores   map[*store]bool
	known    []*owner     // slots that are taken
	taken    map[int]bool // their numbers
	seen     uint64       // claims that were read
	doubtful time.Time    // until then, claims may be missing
	waiting  []uint64     // claims that were begun, and have no slot yet
	filters  []filter
	left     []*left // programs of a former monitor that no request has adopted yet
	orphans  []orphan
	unit     clock.Kind // of the times of its intervals; 0: no time was measured
	clock    clock.Clock
	untimed  error            // why no time can be measured
	lost     []program.Orphan // what a former monitor has left and the process has damaged
	broken   error            // why the memory is not read any more
	retired  time.Time        // when rows of ended threads were last moved
	patient  time.Time        // until then, rows that are being changed are not waited for
	looked   time.Time        // when all slots were last examined
}

// owner is the thread that has a slot.
type owner struct {
	slot    int
	tid     int
	first   uint64 // when it took the slot, by the time stamp counter
	started uint64 // as in /proc
	alive   bool   // when it was first seen
}

// claim identifies one use of a slot: by the thread's number and the time. Numbers are used again, and two
// threads may take their slots at the same tick.
type claim struct {
	tid int
	at  uint64
}

func (o *owner) claim() claim { return claim{o.tid, o.first} }

// filter is the set of threads that a program is limited to.
type filter struct {
	number  int
	threads []thread
}

type thread struct {
	tid     int
	started uint64
}

// nsPerTick is the unit of starting times in /proc: USER_HZ is 100 on x86.
const nsPerTick = 10_000_000

// meet finds the slots that were taken since the last call. The caller holds mu.
func (t *target) meet() {
	claimed, slots := t.memory.word(headerClaimed).Load(), uint64(t.memory.slots)
	if claimed-t.seen+uint64(len(t.waiting)) > slots {
		// There is room for as many claims as slots. Some were overwritten, or the process has written the
		// number itself.
		t.seen, t.waiting, t.doubtful = claimed, nil, time.Now().Add(doubt)
	}
	for ; t.seen != claimed; t.seen++ {
		t.waiting = append(t.waiting, t.seen)
	}
	t.waiting = slices.DeleteFunc(t.waiting, func(claim uint64) bool {
		said := t.memory.word32(claimsAt + 4*int(claim%slots))
		slot := int(said.Load()) - 1
		if slot >= 0 {
			said.Store(0)
			t.admit(slot)
		}
		return slot >= 0
	})
	if now := time.Now(); now.Before(t.doubtful) && now.Sub(t.looked) > lookEvery {
		t.lookRound()
	}
	if t.memory.word(headerCrowd).Load() != 0 && !t.taken[crowd] {
		t.taken[crowd] = true
		t.known = append(t.known, &owner{slot: crowd, first: last})
	}
}

// last is the time of the crowd, so that its rows are the last ones.
const last = 1<<64 - 1

// admit records that a slot is taken. The crowd's slot has no thread.
func (t *target) admit(slot int) {
	if slot < t.memory.slots && slot != crowd && !t.taken[slot] {
		t.taken[slot] = true
		t.known = append(t.known, t.identify(slot))
	}
}

// clear frees a cell with all its rows.
func (t *target) clear(c cell) {
	for _, o := range t.known {
		t.memory.wipe(o.slot, c)
	}
	t.memory.give(c)
}

// identify finds the thread that has a slot. If a thread with this number was started after the slot was
// taken, it is another one.
func (t *target) identify(slot int) *owner {
	at := t.memory.slotAt(slot)
	o := &owner{slot: slot, tid: int(t.memory.word32(at+slotTID).Load() % (1 << threadBits)), first: t.memory.word(at + slotFirst).Load()}
	taken := t.placer.clock.sinceBoot(o.first) / nsPerTick
	ticks, err := proc.ThreadStart(t.proc.PID, o.tid)
	o.started, o.alive = ticks, err == nil && ticks <= taken && !t.ground.Gone()
	if !o.alive {
		o.started = taken // unknown; it did not start later than that
	}
	return o
}

// retire moves the rows of ended threads away and frees their slots, some at a time, because new threads
// may be waiting for slots. The caller holds mu.
func (t *target) retire() error {
	tids, err := proc.Threads(t.proc.PID)
	if err != nil {
		return nil // the process has ended and needs no slots
	}
	slices.Sort(tids)
	var ended, rest []*owner
	for _, o := range t.known {
		if _, runs := slices.BinarySearch(tids, o.tid); runs || o.slot == crowd || t.runs(o) {
			rest = append(rest, o)
		} else {
			ended = append(ended, o)
		}
	}
	stores := slices.Collect(maps.Keys(t.stores))
	for _, o := range t.orphans {
		stores = append(stores, o.store)
	}
	t.known = rest
	var errs []error
	for len(ended) > 0 {
		// Either all rows of a slot are moved or none: otherwise some would count twice.
		n := min(len(ended), atOnce, t.recordsLeft(stores))
		if n == 0 {
			errs = append(errs, t.fold(stores, 1)) // to only the sums
			n = min(len(ended), atOnce, t.recordsLeft(stores))
		}
		if n == 0 {
			t.known = append(t.known, ended...)
			return errors.Join(append(errs, errNoRoom)...)
		}
		for _, s := range stores {
			errs = append(errs, s.move(ended[:n]))
		}
		for _, o := range ended[:n] {
			if err := t.memory.freeSlot(o.slot, o.tid); err != nil {
				t.known, errs = append(t.known, o), append(errs, err)
				continue
			}
			delete(t.taken, o.slot)
		}
		ended = ended[n:]
		errs = append(errs, t.foldMany(stores))
	}
	return errors.Join(errs...)
}

// atOnce is how many slots are freed together.
const atOnce = 64

// runs reports whether a thread exists that is not in the list: a list of threads that is read while
// threads end may be incomplete.
func (t *target) runs(o *owner) bool {
	_, err := proc.ThreadStart(t.proc.PID, o.tid)
	return err == nil
}

// attend looks after the slots, and after the threads that programs are limited to.
func (t *target) attend() (err error) {
	defer t.release(t.hold(), &err)
	if t.broken != nil {
		return t.broken
	}
	t.followLine()
	t.meet()
	if !t.doubtful.IsZero() {
		t.lookRound() // a claim may have been cleared when the process was adopted
	}
	for _, f := range t.filters {
		for i, named := range f.threads {
			if named.tid == 0 {
				continue
			}
			if ticks, err := proc.ThreadStart(t.proc.PID, named.tid); err != nil || ticks != named.started {
				t.memory.filterWord(f.number, i).Store(0)
			}
		}
	}
	if len(t.known) < t.memory.slots/2 && time.Since(t.retired) < retireEvery {
		return nil
	}
	t.retired = time.Now()
	return t.retire()
}

// leave removes a user; the last one closes the ground. The caller holds mu.
func (t *target) leave() error {
	if t.users--; t.users > 0 {
		return nil
	}
	return t.ground.Close()
}

// attendEvery is how often slots are looked after. Only if a process begins and ends 4,000 threads in this
// time, some find no slot of their own.
const attendEvery = 20 * time.Millisecond

// retireEvery is how often slots of ended threads are freed, before their numbers can be used again.
const retireEvery = 500 * time.Millisecond
