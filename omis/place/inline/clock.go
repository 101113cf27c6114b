//go:build linux && amd64

package inline

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"mirador/omis"
)

// ticks reads the time stamp counter (clock_amd64.s).
func ticks() uint64

// clock knows how long the ticks are that programs count time in. It compares them with
// the kernel's clock, over a span that grows until it is long enough.
type clock struct {
	mu    sync.Mutex
	begin instant
	span  uint64 // nanoseconds that ratio was found over
	ratio uint64 // nanoseconds of a tick, in units of 2⁻⁴⁰

	checked sync.Once
	broken  error // why ticks are not steady
}

// instant is one moment by both clocks.
type instant struct{ ticks, ns uint64 }

const (
	fraction = 40

	// shortest is the span that the length of ticks is found over at least: a moment is
	// known to some 30 ns, so this makes 3 in a million.
	shortest = uint64(20 * time.Millisecond)
	longest  = uint64(2 * time.Second)
)

// ofMachine is the clock of all placers. It begins with the monitor: the sooner its span is
// long enough, the sooner is a duration always told as the same number of nanoseconds.
var ofMachine = newClock()

func newClock() *clock { return &clock{begin: moment(unix.CLOCK_MONOTONIC)} }

// moment reads both clocks at as nearly the same time as can be had.
func moment(id int32) instant {
	return momentBy(func() int64 {
		var t unix.Timespec
		_ = unix.ClockGettime(id, &t) // these clocks exist
		return t.Nano()
	})
}

func momentBy(clock func() int64) instant {
	const tries = 16
	var best instant
	least := ^uint64(0)
	for range tries {
		before := ticks()
		ns := clock()
		after := ticks()
		if took := after - before; took < least {
			least = took
			best = instant{ticks: before + took/2, ns: uint64(ns)}
		}
	}
	return best
}

// check says why time cannot be measured by ticks; nil: it can.
func (c *clock) check() error {
	c.checked.Do(func() { c.broken = unsteady() })
	return c.broken
}

func unsteady() error {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return err
	}
	_, flags, _ := bytes.Cut(info, []byte("\nflags"))
	flags, _, _ = bytes.Cut(flags, []byte("\n"))
	for _, flag := range []string{"constant_tsc", "nonstop_tsc"} {
		if !bytes.Contains(append(flags, ' '), []byte(" "+flag+" ")) {
			return fmt.Errorf("the processor's time stamp counter does not run steadily (no %s)", flag)
		}
	}
	source, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	if err != nil {
		return err
	}
	switch name := strings.TrimSpace(string(source)); name {
	case "tsc":
		return nil
	case "kvm-clock":
		return stableKVMClock()
	default:
		return fmt.Errorf("the kernel does not trust the processor's time stamp counter: its clock is %s", name)
	}
}

// stableKVMClock returns nil if the kernel computes kvm-clock from the time stamp counter in
// the same way on all processors. The hypervisor says so by flag 1 of the page that the
// kernel maps into every process as [vvar_vclock].
func stableKVMClock() error {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.HasSuffix(strings.TrimSpace(line), "[vvar_vclock]") {
			continue
		}
		first, _, _ := strings.Cut(line, "-")
		at, err := strconv.ParseUint(first, 16, 64)
		if err != nil {
			return err
		}
		const flags = 29                           // of struct pvclock_vcpu_time_info
		page := *(**[32]byte)(unsafe.Pointer(&at)) // the kernel's page, which Go's collector does not know
		if page[flags]&1 == 0 {
			return errors.New("the hypervisor does not promise that kvm-clock is the same on all processors (flag TSC_STABLE)")
		}
		return nil
	}
	return errors.New("the clock is kvm-clock, and this kernel does not map its page as [vvar_vclock]")
}

// tick is the length of a tick, in units of 2⁻⁴⁰ nanoseconds.
func (c *clock) tick() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.span >= longest {
		return c.ratio
	}
	now := moment(unix.CLOCK_MONOTONIC)
	if span := now.ns - c.begin.ns; span < shortest {
		time.Sleep(time.Duration(shortest - span))
		now = moment(unix.CLOCK_MONOTONIC)
	}
	c.span = now.ns - c.begin.ns
	hi, lo := bits.Mul64(c.span, 1<<fraction)
	c.ratio, _ = bits.Div64(hi, lo, now.ticks-c.begin.ticks)
	return c.ratio
}

// sinceBoot is when it was so many ticks, in nanoseconds since the machine was started.
func (c *clock) sinceBoot(at uint64) uint64 {
	now := moment(unix.CLOCK_BOOTTIME)
	if at >= now.ticks {
		return now.ns
	}
	return now.ns - min(nanoseconds(now.ticks-at, c.tick()), now.ns)
}

// converter makes times by another clock of ticks, all of them by one reading of both: so
// their order stays.
func (c *clock) converter(other func() int64) func(ticks uint64) int64 {
	tick := c.tick()
	now := momentBy(other)
	return func(at uint64) int64 {
		if at > now.ticks {
			return int64(now.ns + nanoseconds(at-now.ticks, tick))
		}
		return int64(now.ns) - int64(nanoseconds(now.ticks-at, tick))
	}
}

func nanoseconds(ticks, tick uint64) uint64 { return scale(omis.Uint128{Lo: ticks}, tick).Lo }

// scale multiplies by a factor in units of 2⁻⁴⁰.
func scale(u omis.Uint128, factor uint64) omis.Uint128 {
	mid, low := bits.Mul64(u.Lo, factor)
	top, rest := bits.Mul64(u.Hi, factor)
	mid, carry := bits.Add64(mid, rest, 0)
	top += carry
	return omis.Uint128{
		Hi: top<<(64-fraction) | mid>>fraction,
		Lo: mid<<(64-fraction) | low>>fraction,
	}
}
