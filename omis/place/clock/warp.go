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
	warpMost = 16 // processors that are compared
)

// warp compares the counters of processors for a moment: a thread on each writes the
// greatest count that any has read so far, and none must read less. The kernel does the same
// with counters that it takes for its clock.
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
			runtime.LockOSThread() // and never unlock it: the thread ends with the goroutine
			if unix.SchedSetaffinity(0, &set) != nil {
				return // the processor was taken away meanwhile
			}
			for n := 0; n%64 != 0 || time.Now().Before(end); n++ {
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
