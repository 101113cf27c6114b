//go:build linux

package sched

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/tracepoint"
)

// Kind is a kind of event, or a set of kinds.
type Kind uint32

const (
	Scheduled   Kind = 1 << iota // the thread got a processor
	Descheduled                  // the thread lost it: its time slice was over, or it blocked, stopped or ended
	Blocked                      // the thread waits for something; always together with Descheduled
	Unblocked                    // what the thread waited for has happened
	BlockedOnIO                  // the thread waits for a disk; always together with Blocked
	All         = Scheduled | Descheduled | Blocked | Unblocked | BlockedOnIO
)

// Event is one occurrence. Time is CLOCK_MONOTONIC in nanoseconds.
type Event struct {
	TID  int
	Kind Kind
	Time int64
}

// Sizes of an Observer's maps in the kernel.
const (
	mostThreads = 1 << 15
	ringSize    = 1 << 20 // 40,000 unread events
)

// watched is the map element of a watched thread.
type watched struct {
	Wanted Kind
	State  uint32
	Since  int64 // time of the last event
}

// States of a thread.
const (
	isBlocked = 1 // Unblocked will follow
	isRunning = 2 // Scheduled was reported
)

// Observer observes threads of this machine.
type Observer struct {
	set     *tracepoint.Set
	threads *ebpf.Map // tid -> watched
	lost    *ebpf.Map
	reader  *ringbuf.Reader
	reading sync.WaitGroup

	mu sync.Mutex // serialises changes of threads
}

// Open starts to observe. It calls handle for each event of the watched threads, one call
// at a time and in order. handle must not call the Observer. If privileges are missing,
// the *omis.Error names the missing capabilities.
func Open(handle func(Event)) (*Observer, error) { return open(handle, ringSize) }

// Check returns why scheduling cannot be observed on this machine, nil if it can.
func Check() error {
	o, err := Open(func(Event) {})
	if err != nil {
		return err
	}
	return o.Close()
}

func open(handle func(Event), size uint32) (*Observer, error) {
	o := &Observer{set: tracepoint.NewSet("observe scheduling")}
	ring, err := o.load(size)
	if err == nil {
		o.reader, err = ringbuf.NewReader(ring)
	}
	if err != nil {
		o.set.Close()
		return nil, err
	}
	o.reading.Go(func() { o.read(handle) })
	return o, nil
}

func (o *Observer) load(size uint32) (ring *ebpf.Map, err error) {
	if o.threads, err = o.set.Map(&ebpf.MapSpec{
		Type: ebpf.Hash, KeySize: 4, ValueSize: uint32(binary.Size(watched{})), MaxEntries: mostThreads, Flags: unix.BPF_F_NO_PREALLOC,
	}); err != nil {
		return nil, err
	}
	if o.lost, err = o.set.Map(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}); err != nil {
		return nil, err
	}
	if ring, err = o.set.Map(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: size}); err != nil {
		return nil, err
	}
	l, err := findLayout()
	if err != nil {
		return nil, err
	}
	if l.level, err = o.level(l); err != nil {
		return nil, err
	}
	p := programs{layout: l, threads: o.threads, lost: o.lost, ring: ring}
	if err := o.set.Attach("sched_switch", p.onSwitch()); err != nil {
		return nil, err
	}
	return ring, o.set.Attach("sched_wakeup", p.onWakeup())
}

// Watch sets the kinds of events to report for a thread; no kind removes the thread. The
// caller must also remove a thread that has ended, because its number may be reused.
func (o *Observer) Watch(tid int, kinds Kind) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := uint32(tid)
	if kinds == 0 {
		if err := o.threads.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return omis.Errorf(omis.OSError, "cannot end the observation of thread %d: %w", tid, err)
		}
		return nil
	}
	var w watched
	if err := o.threads.Lookup(key, &w); err != nil {
		w.State = state(tid)
	}
	w.Wanted = kinds
	err := o.threads.Put(key, w)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.E2BIG):
		return omis.Errorf(omis.NoMemory, "cannot observe the scheduling of more than %d threads", mostThreads)
	}
	return omis.Errorf(omis.OSError, "cannot observe the scheduling of thread %d: %w", tid, err)
}

// state returns whether the thread is waiting now, so that the end of the wait is an
// event.
func state(tid int) uint32 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", tid))
	if err != nil {
		return isRunning
	}
	i := strings.LastIndex(string(stat), ") ")
	if rest := string(stat[i+1:]); strings.HasPrefix(rest, " S") || strings.HasPrefix(rest, " D") {
		return isBlocked
	}
	return isRunning
}

// Lost counts the events that were dropped because the handler was too slow.
func (o *Observer) Lost() uint64 {
	var n uint64
	if err := o.lost.Lookup(uint32(0), &n); err != nil {
		return 0 // closed
	}
	return n
}

// Close ends the observation; handle is not called again.
func (o *Observer) Close() error {
	err := o.reader.Close()
	o.reading.Wait()
	return errors.Join(err, o.set.Close())
}

func (o *Observer) read(handle func(Event)) {
	var r ringbuf.Record
	for {
		if err := o.reader.ReadInto(&r); err != nil {
			return // closed
		}
		if len(r.RawSample) < recordSize {
			continue
		}
		handle(Event{
			Time: int64(binary.LittleEndian.Uint64(r.RawSample[recordTime:])),
			TID:  int(binary.LittleEndian.Uint32(r.RawSample[recordTID:])),
			Kind: Kind(binary.LittleEndian.Uint32(r.RawSample[recordKind:])),
		})
	}
}
