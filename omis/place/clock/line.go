//go:build linux

package clock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"runtime/debug"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ticks reads the time stamp counter, after all preceding instructions.
func Ticks() uint64

// Offsets of struct pvclock_vcpu_time_info, an interface of hypervisors: KVM and Xen
// write it, Linux maps it into every process.
const (
	PageVersion = 0 // odd while the hypervisor changes the rest; 4 bytes
	PageTicks   = 8
	PageTime    = 16 // nanoseconds at that tick
	PageFactor  = 24 // 4 bytes
	PageShift   = 28 // 1 byte
	pageFlags   = 29 // 1 byte
	pageSize    = 32

	flagStable = 1
)

// Fraction is the number of fractional bits of Line.Factor.
const Fraction = 40

// Line converts ticks to nanoseconds. It is the content of a page, until the hypervisor
// changes that.
type Line struct {
	Version uint32
	Ticks   uint64
	Time    uint64 // at Ticks, in nanoseconds
	Mul     uint32
	Shift   int8
	Flags   uint8
}

// ParseLine parses a page. whole is false while the hypervisor changes it.
func ParseLine(b []byte) (l Line, whole bool) {
	l = Line{
		Version: binary.LittleEndian.Uint32(b[PageVersion:]),
		Ticks:   binary.LittleEndian.Uint64(b[PageTicks:]),
		Time:    binary.LittleEndian.Uint64(b[PageTime:]),
		Mul:     binary.LittleEndian.Uint32(b[PageFactor:]),
		Shift:   int8(b[PageShift]),
		Flags:   b[pageFlags],
	}
	return l, l.Version%2 == 0
}

// Put writes a page, as a hypervisor does.
func (l Line) Put(b []byte) {
	binary.LittleEndian.PutUint64(b[PageTicks:], l.Ticks)
	binary.LittleEndian.PutUint64(b[PageTime:], l.Time)
	binary.LittleEndian.PutUint32(b[PageFactor:], l.Mul)
	b[PageShift], b[pageFlags] = byte(l.Shift), l.Flags
}

// Limits of the shift that Factor can express. A counter of 256 GHz has the least, one of
// 60 Hz the greatest.
const (
	leastShift = -8
	mostShift  = 24
)

func (l Line) check() error {
	switch {
	case l.Version == 0 || l.Mul == 0:
		return errors.New("the hypervisor has not filled the clock page")
	case l.Flags&flagStable == 0:
		return errors.New("the hypervisor does not promise that its clock is the same on all processors (flag TSC_STABLE of the clock page)")
	case l.Shift < leastShift || l.Shift > mostShift:
		return fmt.Errorf("the clock page has the shift %d", l.Shift)
	}
	return nil
}

// Factor returns the length of a tick in units of 2⁻⁴⁰ nanoseconds.
func (l Line) Factor() uint64 { return uint64(l.Mul) << (l.Shift + 8) }

// Origin returns the time at tick 0, modulo 2⁶⁴.
func (l Line) Origin() uint64 { return l.Time - scaled(l.Ticks, l.Factor()) }

// At returns the time at a tick.
func (l Line) At(ticks uint64) uint64 { return l.Origin() + scaled(ticks, l.Factor()) }

func scaled(ticks, factor uint64) uint64 {
	hi, lo := bits.Mul64(ticks, factor)
	return hi<<(64-Fraction) | lo>>Fraction
}

// Spread multiplies the factor in Key.
const Spread = 0x9e3779b97f4a7c15

// Key returns a number that is equal for two lines, to within Tolerance, only if they
// have the same rate and origin. The version of a page, in contrast, can change while
// both stay the same.
func (l Line) Key() uint64 { return l.Origin() + l.Factor()*Spread }

// Tolerance is the greatest difference, in nanoseconds, of two keys of one line:
// hypervisors compute the page anew from time to time, and round.
const Tolerance = 200

// copyPage copies the beginning of a page of this process. If the kernel has no clock
// behind the mapping, it sends SIGBUS, which becomes an error.
func copyPage(addr uint64) (b []byte, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("the kernel has no clock page behind %s", pageName)
		}
	}()
	page := *(**[pageSize]byte)(unsafe.Pointer(&addr)) // memory of the kernel, unknown to Go's collector
	version := (*uint32)(unsafe.Pointer(page))
	b = make([]byte, pageSize)
	for range tries {
		before := load(version)
		copy(b, page[:])
		if load(version) == before {
			break
		}
	}
	return b, nil
}

// agrees compares a line with the kernel's raw clock, which is never adjusted, over a
// short time.
func agrees(l Line) error {
	const (
		span  = 2 * time.Millisecond
		most  = 3 * time.Microsecond
		again = 5
	)
	var differs time.Duration
	for range again {
		ticks, raw := moment()
		time.Sleep(span)
		later, laterRaw := moment()
		differs = time.Duration(l.At(later) - l.At(ticks) - (laterRaw - raw)).Abs()
		if differs <= most {
			return nil
		}
	}
	return fmt.Errorf("the clock page differs from the kernel's clock by %v in %v", differs, span)
}

// moment reads the counter and the raw clock at nearly the same time.
func moment() (ticks, raw uint64) {
	least := ^uint64(0)
	for range 16 {
		var t unix.Timespec
		before := Ticks()
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &t) // this clock exists
		if took := Ticks() - before; took < least {
			least, ticks, raw = took, before+took/2, uint64(t.Nano())
		}
	}
	return ticks, raw
}

// costs measures the time of reading the clock by the vDSO, which Go's runtime uses, and
// by a system call.
func costs() (vdso, system time.Duration) {
	const batches, calls = 50, 20
	vdso, system = time.Hour, time.Hour
	for range batches {
		begin := time.Now()
		for range calls {
			_ = time.Since(begin)
		}
		vdso = min(vdso, time.Since(begin)/calls)
		begin = time.Now()
		for range calls {
			var t unix.Timespec
			_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
		}
		system = min(system, time.Since(begin)/calls)
	}
	return vdso, system
}
