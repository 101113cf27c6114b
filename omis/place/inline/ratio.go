//go:build linux && amd64

package inline

import (
	"math/bits"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/place/clock"
	"mirador/omis/program"
)

// ratio measures the length of a tick of the time stamp counter. It compares the counter with the kernel's
// clock, over a span that grows until it is long enough.
type ratio struct {
	mu    sync.Mutex
	begin instant
	span  uint64 // length of the span in nanoseconds
	found uint64 // nanoseconds of a tick, in units of 2⁻⁴⁰
}

// instant is one moment by both clocks.
type instant struct{ ticks, ns uint64 }

const (
	fraction = 40

	// shortest is the least span. A moment is known to about 30 ns, so the error is at most 3 in a million.
	shortest = uint64(20 * time.Millisecond)
	longest  = uint64(2 * time.Second)
)

// ofMachine is the ratio for all placers. It begins with the monitor, so that its span is long enough
// early: then a number of ticks is always the same number of nanoseconds.
var ofMachine = newRatio()

func newRatio() *ratio { return &ratio{begin: moment(unix.CLOCK_MONOTONIC)} }

// moment reads both clocks at nearly the same time.
func moment(id int32) instant {
	return momentBy(func() int64 {
		var t unix.Timespec
		_ = unix.ClockGettime(id, &t) // these clocks exist
		return t.Nano()
	})
}

func momentBy(other func() int64) instant {
	const tries = 16
	var best instant
	least := ^uint64(0)
	for range tries {
		before := clock.Ticks()
		ns := other()
		after := clock.Ticks()
		if took := after - before; took < least {
			least = took
			best = instant{ticks: before + took/2, ns: uint64(ns)}
		}
	}
	return best
}

// tick returns the length of a tick, in units of 2⁻⁴⁰ nanoseconds.
func (c *ratio) tick() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.span >= longest {
		return c.found
	}
	now := moment(unix.CLOCK_MONOTONIC)
	if span := now.ns - c.begin.ns; span < shortest {
		time.Sleep(time.Duration(shortest - span))
		now = moment(unix.CLOCK_MONOTONIC)
	}
	c.span = now.ns - c.begin.ns
	hi, lo := bits.Mul64(c.span, 1<<fraction)
	c.found, _ = bits.Div64(hi, lo, now.ticks-c.begin.ticks)
	return c.found
}

// sinceBoot converts a value of the counter to nanoseconds since the machine was started.
func (c *ratio) sinceBoot(at uint64) uint64 {
	now := moment(unix.CLOCK_BOOTTIME)
	if at >= now.ticks {
		return now.ns
	}
	return now.ns - min(nanoseconds(now.ticks-at, c.tick()), now.ns)
}

// converter converts ticks to times of another clock. It reads both clocks once, so the times keep their
// order.
func (c *ratio) converter(other func() int64) func(ticks uint64) int64 {
	tick := c.tick()
	now := momentBy(other)
	return func(at uint64) int64 {
		if at > now.ticks {
			return int64(now.ns + nanoseconds(at-now.ticks, tick))
		}
		return int64(now.ns) - int64(nanoseconds(now.ticks-at, tick))
	}
}

func nanoseconds(ticks, tick uint64) uint64 { return scale(program.Uint128{Lo: ticks}, tick).Lo }

// scale multiplies by a factor in units of 2⁻⁴⁰.
func scale(u program.Uint128, factor uint64) program.Uint128 {
	mid, low := bits.Mul64(u.Lo, factor)
	top, rest := bits.Mul64(u.Hi, factor)
	mid, carry := bits.Add64(mid, rest, 0)
	top += carry
	return program.Uint128{
		Hi: top<<(64-fraction) | mid>>fraction,
		Lo: mid<<(64-fraction) | low>>fraction,
	}
}
