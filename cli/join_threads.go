package cli

import (
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/host/proc"
	"mirador/probes/journal"
)

// recallThreads gives the engine the tokens of threads that a killed gateway has left in the
// data directory, and has it record new ones there.
func recallThreads(j *journal.Journal, e *engine.Engine, log *slog.Logger) error {
	threads := &threadBook{journal: j, log: log}
	if err := threads.recall(e); err != nil {
		return err
	}
	e.Tell(threads)
	return nil
}

// threadBook keeps the tokens of threads in the journal: a token is the thread's for
// life, whatever becomes of gateways.
type threadBook struct {
	journal *journal.Journal
	log     *slog.Logger
}

var _ engine.Chronicle = (*threadBook)(nil)

// namedThread is what stands in the journal. Seen is when the token was given out, in
// ticks since boot: a thread of that number that began later is another one.
type namedThread struct {
	Proc omis.ProcID `json:"proc"`
	TID  int         `json:"tid"`
	Seen uint64      `json:"seen"`
}

const threadPrefix = "thread/"

// recall tells the engine the tokens of the threads that still live.
func (b *threadBook) recall(e *engine.Engine) error {
	for _, key := range b.journal.Keys(threadPrefix) {
		var t namedThread
		_, unclear := b.journal.Get(key, &t)
		if start, err := proc.ThreadStart(t.Proc.PID, t.TID); unclear != nil || err != nil || start > t.Seen || proc.Alive(t.Proc) != nil {
			b.note(b.journal.Delete(key))
			continue
		}
		e.RecallThread(t.Proc, t.TID, omis.Token(strings.TrimPrefix(key, threadPrefix)))
	}
	return nil
}

func (b *threadBook) Named(token omis.Token, id omis.ProcID, tid int) {
	b.note(b.journal.Put(threadPrefix+string(token), namedThread{id, tid, ticks()}))
}

func (b *threadBook) Ended(token omis.Token) { b.note(b.journal.Delete(threadPrefix + string(token))) }

// note logs what nobody waits for.
func (b *threadBook) note(err error) {
	if err != nil {
		b.log.Debug("a thread's token will not outlive the gateway", "error", err)
	}
}

// ticks is the time since boot as /proc tells when threads began: USER_HZ is 100 on x86.
func ticks() uint64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0 // Linux has this clock since 2.6.39
	}
	return uint64(time.Duration(now.Nano()) / (10 * time.Millisecond))
}
