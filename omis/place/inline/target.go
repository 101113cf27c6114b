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
	users    int // stores, programs, and the placer for as long as it may be asked for
	stores   map[*store]bool
	known    []*owner     // the slots that are taken
	taken    map[int]bool // which these are
	seen     uint64       // claims that were looked at
	doubtful time.Time    // until when claims may say nothing of a slot
	waiting  []uint64     // claims that were made, but not said which
	filters  []filter
	left     []*left // programs of a former monitor that nobody has asked for yet
	orphans  []orphan
	unit     clock.Kind // of the times of its intervals; 0: none was measured
	clock    clock.Clock
	untimed  error            // why no time can be measured
	lost     []program.Orphan // what a former monitor has left, and the process has damaged
	broken   error            // why nothing in the memory is read any more
	retired  time.Time        // when rows of ended threads were moved away last
	patient  time.Time        // before that, nobody waits for a row that is being changed
	looked   time.Time        // when all slots were looked at last
}

// owner is the thread that has a slot.
type owner struct {
	slot    int
	tid     int
	first   uint64 // when it took the slot, by the time stamp counter
	started uint64 // as /proc has it
	alive   bool   // it was, when it was seen first
}

// claim is who took a slot, and when. Either is not enough: numbers are given again, and
// threads that run side by side may take theirs at the same tick.
type claim struct {
	tid int
	at  uint64
}

func (o *owner) claim() claim { return claim{o.tid, o.first} }

// filter are the threads that a program is for.
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

// meet looks who has taken slots since it was called last. The caller holds mu.
func (t *target) meet() {
	claimed, slots := t.memory.word(headerClaimed).Load(), uint64(t.memory.slots)
	if claimed-t.seen+uint64(len(t.waiting)) > slots {
		// There is room for no more claims than slots: some are lost, or the process has
		// written the number itself.
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

// last is when the crowd came: its rows are the last ones.
const last = 1<<64 - 1

// admit notes that a slot is taken. The crowd's is nobody's own.
func (t *target) admit(slot int) {
	if slot < t.memory.slots && slot != crowd && !t.taken[slot] {
		t.taken[slot] = true
		t.known = append(t.known, t.identify(slot))
	}
}

// clear frees a cell, with all its rows.
func (t *target) clear(c cell) {
	for _, o := range t.known {
		t.memory.wipe(o.slot, c)
	}
	t.memory.give(c)
}

// identify finds out whose slot it is. A thread that was started after the slot was
// taken is another that has its number by now.
func (t *target) identify(slot int) *owner {
	at := t.memory.slotAt(slot)
	o := &owner{slot: slot, tid: int(t.memory.word32(at+slotTID).Load() % (1 << threadBits)), first: t.memory.word(at + slotFirst).Load()}
	taken := t.placer.clock.sinceBoot(o.first) / nsPerTick
	ticks, err := proc.ThreadStart(t.proc.PID, o.tid)
	o.started, o.alive = ticks, err == nil && ticks <= taken && !t.ground.Gone()
	if !o.alive {
		o.started = taken // unknown; it came no later
	}
	return o
}

// retire moves the rows of ended threads away, and gives their slots to others, some
// after the other: new threads may be waiting for them. The caller holds mu.
func (t *target) retire() error {
	tids, err := proc.Threads(t.proc.PID)
	if err != nil {
		return nil // the process has ended: nobody needs a slot
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
		// Of a slot either all rows are moved or none: else some would be told twice.
		n := min(len(ended), atOnce, t.recordsLeft(stores))
		if n == 0 {
			errs = append(errs, t.fold(stores, 1)) // to the sums alone
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

// atOnce is how many slots are given to others together.
const atOnce = 64

// runs tells whether a thread is there that was not in the list: one that others leave
// while it is read may lack some.
func (t *target) runs(o *owner) bool {
	_, err := proc.ThreadStart(t.proc.PID, o.tid)
	return err == nil
}

// attend looks after the slots and the threads that programs are for.
func (t *target) attend() (err error) {
	defer t.release(t.hold(), &err)
	if t.broken != nil {
		return t.broken
	}
	t.followLine()
	t.meet()
	if !t.doubtful.IsZero() {
		t.lookRound() // a claim may have been wiped when this process was taken over
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

// leave counts a user less; the last one closes the ground. The caller holds mu.
func (t *target) leave() error {
	if t.users--; t.users > 0 {
		return nil
	}
	return t.ground.Close()
}

// attendEvery is how often slots are looked after. A process has to begin and end 4,000
// threads in that time for one of them to find no slot of its own.
const attendEvery = 20 * time.Millisecond

// retireEvery is how soon a thread that ended is not taken for a new one of the same
// number any more.
const retireEvery = 500 * time.Millisecond
