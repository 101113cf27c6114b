//go:build linux

package clock

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

func load(p *uint32) uint32 { return atomic.LoadUint32(p) }

const (
	warpTime = 3 * time.Millisecond
	warpMost = 16 // number of processors to compare
)

// warp compares the counters of processors for a short time: a thread on each processor
// publishes its count if that is the greatest so far, and no thread may read a smaller
// one afterwards. The kernel checks counters in the same way before it uses them for its
// clock.
func warp(ticks func() uint64, d time.Duration) error {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	var greatest, back atomic.Uint64
	var threads sync.WaitGroup
	end := time.Now().Add(d)
	started := 0
	for cpu := 0; cpu < 64*len(all) && started < warpMost; cpu++ {
		if !all.IsSet(cpu) {
			continue
		}
		started++
		one.Zero()
		one.Set(cpu)
		set := one
		threads.Go(func() {
			runtime.LockOSThread() // without unlock, the thread ends with the goroutine
			if unix.SchedSetaffinity(0, &set) != nil {
				return // the processor went offline meanwhile
			}
			for n := 0; n == 0 || n%64 != 0 || time.Now().Before(end); n++ { // also if the thread begins late
				before := greatest.Load()
				now := ticks()
				if now < before {
					back.Store(max(back.Load(), before-now))
					return
				}
				greatest.CompareAndSwap(before, now)
			}
		})
	}
	threads.Wait()
	switch {
	case started == 0:
		return errors.New("no processor to compare time stamp counters on")
	case back.Load() > 0:
		return fmt.Errorf("the time stamp counters of two processors differ by %d ticks", back.Load())
	}
	return nil
}
