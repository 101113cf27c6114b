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

// recallEngine gives the engine what a killed gateway recorded for it in the data
// directory, and has it record there from now on.
func recallEngine(j *journal.Journal, e *engine.Engine, log *slog.Logger) {
	records := &engineRecords{journal: j, log: log}
	records.recallThreads(e)
	records.recallLosses(e, time.Now())
	e.SetJournal(records)
}

// engineRecords are the records of the engine in the journal: the tokens of threads,
// because a token belongs to its thread for life, and the keys of values that would be
// lost with this gateway.
type engineRecords struct {
	journal *journal.Journal
	log     *slog.Logger
}

var _ engine.Journal = (*engineRecords)(nil)

// namedThread is what stands in the journal. Seen is when the token was given out, in
// ticks since boot: a thread of that number that began later is another one.
type namedThread struct {
	Proc omis.ProcID `json:"proc"`
	TID  int         `json:"tid"`
	Seen uint64      `json:"seen"`
}

const threadPrefix = "thread/"

// recallThreads tells the engine the tokens of the threads that still live.
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

// note logs that a record was not written. The journal tries again by itself.
func (b *engineRecords) note(err error) {
	if err != nil {
		b.log.Debug("the next gateway may not know a thread's token, or that values were lost", "error", err)
	}
}

// inMemory is the record of a key whose values, or some of them, are or were in the
// memory of a gateway.
type inMemory struct {
	Now  bool      `json:"now"`           // in the memory of the gateway that wrote this
	Lost time.Time `json:"lost,omitzero"` // when a later gateway found such values lost
}

const memoryPrefix = "memory/"

// recallLosses tells the engine which kept values are lost because they were in the
// memory of a gateway that was killed.
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

// ticks is the time since boot as /proc tells when threads began: USER_HZ is 100 on x86.
func ticks() uint64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0 // Linux has this clock since 2.6.39
	}
	return uint64(time.Duration(now.Nano()) / (10 * time.Millisecond))
}
