//go:build linux

package clock

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// machine describes a Machine whose files the test writes.
type machine struct {
	source, flags, maps string
	line                Line
	page, agrees, warp  error
	vdso, system        time.Duration
}

const (
	steady = "fpu tsc constant_tsc nonstop_tsc"
	vvar   = "7f2c959ed000-7f2c959f1000 r--p 00000000 00:00 0                          [vvar]\n"
	vclock = "7f2c959f1000-7f2c959f3000 r--p 00000000 00:00 0                          [vvar_vclock]\n"
)

var stable = Line{Version: 20, Ticks: 464108970996993, Time: 1334006576, Mul: 4098259057, Shift: -1, Flags: flagStable}

func (m machine) judge(t *testing.T) (Clock, error) {
	t.Helper()
	root := t.TempDir()
	for path, text := range map[string]string{
		"sys/devices/system/clocksource/clocksource0/current_clocksource": m.source + "\n",
		"proc/cpuinfo":   "processor\t: 0\nflags\t\t: " + m.flags + "\nbugs\t\t:\n",
		"proc/self/maps": m.maps,
	} {
		file := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Machine{
		Root: root,
		Page: func(addr uint64) ([]byte, error) {
			if addr != 0x7f2c959f1000 {
				t.Errorf("the page at %#x is read", addr)
			}
			b := make([]byte, pageSize)
			b[PageVersion] = byte(m.line.Version)
			m.line.Put(b)
			return b, m.page
		},
		Agrees: func(l Line) error {
			if l != m.line {
				t.Errorf("the line is %+v, want %+v", l, m.line)
			}
			return m.agrees
		},
		Costs: func() (time.Duration, time.Duration) { return m.vdso, m.system },
		Warp:  func() error { return m.warp },
	}.Judge()
}

func TestJudge(t *testing.T) {
	unstable, unfilled, odd, shifted := stable, Line{}, stable, stable
	unstable.Flags, odd.Version, shifted.Shift = 0, 21, -9
	const quick, slow = 25, 1400
	good := machine{"kvm-clock", steady, vvar + vclock, stable, nil, nil, nil, quick, slow}
	with := func(change func(*machine)) machine {
		m := good
		change(&m)
		return m
	}
	for name, try := range map[string]struct {
		machine
		want Kind
		why  string
	}{
		"tsc":                    {with(func(m *machine) { m.source, m.maps = "tsc", vvar }), Counter, "is tsc"},
		"kvm-clock":              {good, Page, "kvm-clock"},
		"xen":                    {with(func(m *machine) { m.source = "xen" }), Page, "xen"},
		"Hyper-V":                {with(func(m *machine) { m.source = "hyperv_clocksource_tsc_page" }), Function, "hyperv_clocksource_tsc_page"},
		"kvm-clock, not stable":  {with(func(m *machine) { m.line = unstable }), Function, "TSC_STABLE"},
		"kvm-clock, odd shift":   {with(func(m *machine) { m.line = shifted }), Function, "shift"},
		"kvm-clock, empty page":  {with(func(m *machine) { m.line = unfilled }), Function, "not filled"},
		"kvm-clock, no page":     {with(func(m *machine) { m.maps = vvar }), Function, "does not map"},
		"kvm-clock, nothing in":  {with(func(m *machine) { m.page = errors.New("SIGBUS") }), Function, "SIGBUS"},
		"kvm-clock, other time":  {with(func(m *machine) { m.agrees = errors.New("differs by 1ms") }), Function, "differs by 1ms"},
		"kvm-clock, changing":    {with(func(m *machine) { m.line = odd }), Function, "all the time"},
		"tsc, warps":             {with(func(m *machine) { m.source, m.warp = "tsc", errors.New("differ by 12 ticks") }), Function, "differ by 12 ticks"},
		"tsc, not constant":      {with(func(m *machine) { m.source, m.flags = "tsc", "fpu tsc nonstop_tsc" }), Function, "constant_tsc"},
		"tsc, stops":             {with(func(m *machine) { m.source, m.flags = "tsc", "fpu tsc constant_tsc" }), Function, "nonstop_tsc"},
		"kvm-clock, stops":       {with(func(m *machine) { m.flags = "constant_tsc nonstop_tsc_s3" }), Function, "nonstop_tsc"},
		"hpet":                   {with(func(m *machine) { m.source, m.vdso = "hpet", slow }), 0, "is hpet"},
		"acpi_pm":                {with(func(m *machine) { m.source, m.vdso = "acpi_pm", slow }), 0, "acpi_pm"},
		"kvm-clock, system call": {with(func(m *machine) { m.line, m.vdso = unstable, slow }), 0, "TSC_STABLE"},
		"nothing known":          {with(func(m *machine) { m.source, m.vdso = "", slow }), 0, "kernel's clock is ,"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := try.judge(t)
			why := c.Why
			if err != nil {
				why = err.Error()
			}
			if c.Kind != try.want || (err == nil) != (try.want != 0) || !strings.Contains(why, try.why) {
				t.Errorf("%v: %q (%v), want %v: %q", c.Kind, c.Why, err, try.want, try.why)
			}
		})
	}
}

// TestNow checks that this machine has a clock, or that an error gives the reason.
func TestNow(t *testing.T) {
	c, err := Now()
	t.Logf("%+v, %v", c, err)
	if (err == nil) != (c.Kind != 0) {
		t.Errorf("%+v, %v", c, err)
	}
	if again, _ := Now(); again.Kind != c.Kind || again.Why != c.Why {
		t.Errorf("%+v, and then %+v", c, again)
	}
	if err == nil && c.Locate != nil {
		if at, err := c.Locate(os.Getpid()); err != nil || at == 0 {
			t.Errorf("it is at %#x, %v", at, err)
		}
	}
}

// TestPageIsMissing checks that reading a page without memory fails and does not crash.
func TestPageIsMissing(t *testing.T) {
	if _, err := copyPage(0x1000); err == nil {
		t.Error("the page was read")
	}
}

// TestWarp checks that warp finds two counters that differ, and accepts those that do
// not.
func TestWarp(t *testing.T) {
	if err := warp(Ticks, time.Millisecond); err != nil {
		t.Error(err)
	}
	var n atomic.Int64
	back := func() uint64 { return uint64(1<<40 - n.Add(1)) }
	if err := warp(back, time.Millisecond); err == nil || !strings.Contains(err.Error(), "differ by") {
		t.Errorf("a counter that runs backwards: %v", err)
	}
}

// TestLine checks that the time at a tick equals the kernel's for any rate, and that
// lines with different rates or origins have different keys.
func TestLine(t *testing.T) {
	for _, l := range []Line{stable, {Ticks: 5, Time: 7, Mul: 1 << 31}, {Ticks: 1 << 52, Time: 1 << 60, Mul: 3_000_000_000, Shift: 3}, {Ticks: 1 << 40, Time: 9, Mul: 1<<32 - 1, Shift: -8}} {
		for _, later := range []uint64{0, 1000, 1 << 35} {
			shifted := later
			if l.Shift < 0 {
				shifted >>= -l.Shift
			} else {
				shifted <<= l.Shift
			}
			// The formula of the interface rounds twice: to a tick, and to a nanosecond.
			want := l.Time + shifted>>32*uint64(l.Mul) + shifted&(1<<32-1)*uint64(l.Mul)>>32
			if got := l.At(l.Ticks + later); got-want+2 > 4 {
				t.Errorf("%+v, %d ticks later: %d, want %d", l, later, got, want)
			}
		}
		again := l
		again.Version, again.Ticks, again.Time = l.Version+2, l.Ticks+1<<32, l.At(l.Ticks+1<<32)
		if differ := again.Key() - l.Key() + Tolerance; differ > 2*Tolerance {
			t.Errorf("%+v has another key after it was computed anew", l)
		}
		for _, other := range []Line{{0, l.Ticks, l.Time, l.Mul + 1, l.Shift, 1}, {0, l.Ticks, l.Time + 2000, l.Mul, l.Shift, 1}, {0, l.Ticks, l.Time - 2000, l.Mul, l.Shift, 1}, {0, l.Ticks + 1<<20, l.Time, l.Mul, l.Shift, 1}, {0, l.Ticks, l.Time, l.Mul, l.Shift + 1, 1}} {
			if differ := other.Key() - l.Key() + Tolerance; differ <= 2*Tolerance {
				t.Errorf("%+v and %+v have the same key", l, other)
			}
		}
	}
}

// TestForced checks that each kind can be forced, and that the vDSO contains the
// function.
func TestForced(t *testing.T) {
	c, err := This().Forced(Function)
	if err != nil {
		t.Fatal(err)
	}
	if at, err := c.Locate(os.Getpid()); err != nil || at == 0 {
		t.Errorf("at %#x, %v", at, err)
	}
	if _, err := This().Forced(0); err == nil {
		t.Error("Forced returns a clock of an unknown kind")
	}
}
