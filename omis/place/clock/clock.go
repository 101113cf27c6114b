//go:build linux

package clock

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mirador/omis/host/proc"
)

// Kind is a way in which code reads the time.
type Kind uint32

const (
	// Counter reads the time stamp counter. The program that reads the results must know
	// the length of a tick.
	Counter Kind = iota + 1
	// Page reads the counter, and converts differences to nanoseconds by the hypervisor's
	// page for the kernel's clock (struct pvclock_vcpu_time_info).
	Page
	// Function calls __vdso_clock_gettime.
	Function
)

func (k Kind) String() string {
	switch k {
	case Counter:
		return "the time stamp counter"
	case Page:
		return "the time stamp counter, converted by the hypervisor's clock page"
	case Function:
		return "clock_gettime of the vDSO"
	}
	return "no clock"
}

// Clock is the way to read the time on this machine.
type Clock struct {
	Kind   Kind
	Source string // the kernel's name for its clock
	Why    string // reason for this kind, for users

	// Locate returns the address of the page or function in a process.
	Locate func(pid int) (uint64, error)
	// Line reads the page of this process.
	Line func() (Line, error)
}

// Machine provides what Judge reads.
type Machine struct {
	Root string // Root is the directory that contains proc and sys.

	// Page returns a copy of this process's memory at the address of a page in its maps.
	Page func(addr uint64) ([]byte, error)
	// Agrees returns an error if the counter, converted by a line, differs from the
	// kernel's raw clock.
	Agrees func(Line) error
	// Costs measures the time of reading the clock by the vDSO, and by a system call.
	Costs func() (vdso, system time.Duration)
	// Warp returns an error if the counters of two processors differ.
	Warp func() error
}

// This returns the Machine that this program runs on.
func This() Machine {
	return Machine{Page: copyPage, Agrees: agrees, Costs: costs, Warp: func() error { return warp(Ticks, warpTime) }}
}

// pageName is the name of the mapping of virtual clocks' pages since Linux 6.13. Its
// position in older kernels depends on their version.
const pageName = "[vvar_vclock]"

// Judge chooses the cheapest kind that returns correct times. The error names the missing
// condition.
func (m Machine) Judge() (Clock, error) {
	source, err := m.source()
	if err != nil {
		return Clock{}, fmt.Errorf("cannot read the name of the kernel's clock: %w", err)
	}
	c := Clock{Source: source}
	uneven := m.uneven()
	if uneven == nil {
		switch source {
		case "tsc":
			c.Kind, c.Why = Counter, "the kernel's clock is tsc: the time stamp counter runs steadily"
			return c, nil
		case "kvm-clock", "xen":
			page, err := m.Forced(Page)
			if err == nil {
				c.Kind, c.Locate, c.Line = Page, page.Locate, page.Line
				c.Why = fmt.Sprintf("the kernel's clock is %s, which the hypervisor derives from the time stamp counter in the same way on all processors", source)
				return c, nil
			}
			uneven = err
		default:
			uneven = fmt.Errorf("the kernel's clock is %s, not the time stamp counter", source)
		}
	}
	vdso, system := m.Costs()
	if vdso > system/2 {
		return c, fmt.Errorf("no clock can be read in a program without a system call: %w; and a reading by the vDSO takes %v, by a system call %v", uneven, vdso, system)
	}
	c.Kind, c.Locate = Function, locateFunction
	c.Why = fmt.Sprintf("the vDSO reads the kernel's clock %s in %v, without a system call (%v)", source, vdso, uneven)
	return c, nil
}

func (m Machine) source() (string, error) {
	name, err := os.ReadFile(filepath.Join("/", m.Root, "sys/devices/system/clocksource/clocksource0/current_clocksource"))
	return strings.TrimSpace(string(name)), err
}

// uneven returns the reason why time stamps of different moments or processors cannot be
// compared, nil if they can.
func (m Machine) uneven() error {
	info, err := os.ReadFile(filepath.Join("/", m.Root, "proc/cpuinfo"))
	if err != nil {
		return err
	}
	_, flags, _ := bytes.Cut(info, []byte("\nflags"))
	flags, _, _ = bytes.Cut(flags, []byte("\n"))
	for _, flag := range []string{"constant_tsc", "nonstop_tsc"} {
		if !bytes.Contains(append(flags, ' '), []byte(" "+flag+" ")) {
			return fmt.Errorf("the processor's time stamp counter does not run steadily (/proc/cpuinfo has no flag %s)", flag)
		}
	}
	return m.Warp()
}

// findPage finds and checks the page of the kernel's clock in this process.
func (m Machine) findPage() (at uint64, err error) {
	maps, err := os.ReadFile(filepath.Join("/", m.Root, "proc/self/maps"))
	if err != nil {
		return 0, err
	}
	for text := range strings.Lines(string(maps)) {
		if !strings.HasSuffix(strings.TrimSpace(text), pageName) {
			continue
		}
		if _, err := fmt.Sscanf(text, "%x-", &at); err != nil {
			return 0, err
		}
		l, err := m.lineAt(at)
		if err == nil {
			err = m.Agrees(l)
		}
		return at, err
	}
	return 0, errors.New("this kernel does not map the page of its clock as " + pageName)
}

func (m Machine) lineAt(at uint64) (Line, error) {
	for range tries {
		b, err := m.Page(at)
		if err != nil {
			return Line{}, err
		}
		if l, whole := ParseLine(b); whole {
			return l, l.check()
		}
	}
	return Line{}, errors.New("the hypervisor changes its clock page all the time")
}

const tries = 1000

// locatePage returns the address of the clock's page in a process.
func locatePage(pid int) (uint64, error) { return locate(pid, pageName) }

func locate(pid int, name string) (uint64, error) {
	maps, err := proc.Maps(pid)
	if err != nil {
		return 0, err
	}
	for _, mapping := range maps {
		if mapping.Path == name {
			return mapping.Start, nil
		}
	}
	return 0, fmt.Errorf("the process has unmapped %s, where the kernel's clock is", name)
}

// judged is the result of Now.
var judged struct {
	sync.Mutex
	source string
	clock  Clock
	err    error
}

// Now returns the result of Judge for this machine. It judges again when the kernel has
// changed its clock.
func Now() (Clock, error) {
	m := This()
	source, err := m.source()
	judged.Lock()
	defer judged.Unlock()
	if judged.source == "" || err != nil || judged.source != source {
		judged.clock, judged.err = m.Judge()
		judged.source = source
	}
	return judged.clock, judged.err
}
