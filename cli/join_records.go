package cli

import (
	"errors"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/host/proc"
	"mirador/probes/journal"
)

// recallEngine passes to the engine what a killed gateway recorded in the data directory, and makes
// the engine record there from now on.
func recallEngine(j *journal.Journal, e *engine.Engine, log *slog.Logger) {
	records := &engineRecords{journal: j, log: log}
	records.recallThreads(e)
	records.recallLosses(e, time.Now())
	e.SetJournal(records)
}

// engineRecords stores the engine's records in the journal: tokens of threads, because a token
// names the same thread for the thread's whole life, and the keys of values that would be lost with
// this gateway.
type engineRecords struct {
	journal *journal.Journal
	log     *slog.Logger
}

var _ engine.Journal = (*engineRecords)(nil)

// namedThread is the journal's record of a token. Seen is the time when the token was issued, in
// ticks since boot. A thread with the same number that began later is another thread.
type namedThread struct {
	Proc omis.ProcID `json:"proc"`
	TID  int         `json:"tid"`
	Seen uint64      `json:"seen"`
}

const threadPrefix = "thread/"

// recallThreads passes to the engine the tokens of the threads that still live.
func (b *engineRecords) recallThreads(e *engine.Engine) {
	for _, key := range b.journal.Keys(threadPrefix) {
		var t namedThread
		_, unclear := b.journal.Get(key, &t)
		if start, err := proc.ThreadStart(t.Proc.PID, t.TID); unclear != nil || err != nil || start > t.Seen || proc.Alive(t.Proc) != nil {
			b.note(b.journal.Delete(key))
			continue
		}
		e.RecallThread(t.Proc, t.TID, omis.Token(strings.TrimPrefix(key, threadPrefix)))
	}
}

func (b *engineRecords) Named(token omis.Token, id omis.ProcID, tid int) {
	b.note(b.journal.Put(threadPrefix+string(token), namedThread{id, tid, ticks()}))
}

func (b *engineRecords) Ended(token omis.Token) {
	b.note(b.journal.Delete(threadPrefix + string(token)))
}

// note logs that a record was not written. The journal repeats the attempt itself.
func (b *engineRecords) note(err error) {
	if err != nil {
		b.log.Debug("the next gateway may not know a thread's token, or that values were lost", "error", err)
	}
}

// inMemory is the record of a key. It records whether some of the key's values are, or were, in a
// gateway's memory.
type inMemory struct {
	Now  bool      `json:"now"`           // values are in the memory of the gateway that wrote this record
	Lost time.Time `json:"lost,omitzero"` // when a later gateway found such values lost
}

const memoryPrefix = "memory/"

// recallLosses tells the engine which kept values were lost, because they were in the memory of a
// gateway that was killed.
func (b *engineRecords) recallLosses(e *engine.Engine, now time.Time) {
	for _, key := range b.journal.Keys(memoryPrefix) {
		var r inMemory
		if _, err := b.journal.Get(key, &r); err != nil || r.Now {
			r = inMemory{Lost: now}
			b.note(b.journal.Put(key, r))
		}
		e.RecallLoss(strings.TrimPrefix(key, memoryPrefix), r.Lost)
	}
}

func (b *engineRecords) InMemory(key string) {
	var r inMemory
	_, err := b.journal.Get(memoryPrefix+key, &r)
	r.Now = true
	b.note(errors.Join(err, b.journal.Put(memoryPrefix+key, r)))
}

func (b *engineRecords) Unkept(key string) { b.note(b.journal.Delete(memoryPrefix + key)) }

// ticks returns the time since boot in the unit in which /proc tells when threads began: USER_HZ,
// which is 100 on x86.
func ticks() uint64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0 // impossible: Linux has this clock since 2.6.39
	}
	return uint64(time.Duration(now.Nano()) / (10 * time.Millisecond))
}
