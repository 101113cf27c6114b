//go:build linux

package perf

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/node"
)

// Counters opens counters, up to a limit.
type Counters struct {
	most int64
	open atomic.Int64
}

// New returns Counters that take at most a quarter of the descriptors that this process may
// have.
func New() *Counters {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		limit.Cur = 1024
	}
	return &Counters{most: int64(min(limit.Cur/4, 16384))}
}

// Check returns the reason why this machine cannot count an event, nil if it can.
func Check(name string) error {
	fd, err := open(node.MeterEvent{Name: name}, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// Open counts an event in a thread: see node.Meters.
func (c *Counters) Open(tid int, event node.MeterEvent) (node.Meter, error) {
	if c.open.Add(1) > c.most {
		c.open.Add(-1)
		return nil, omis.Errorf(omis.UnspecifiedError, "%d threads are counted by perf_event_open, which is the limit (a quarter of the descriptors that the monitor may open): count fewer threads or events, or raise the limit (ulimit -n)", c.most)
	}
	fd, err := open(event, tid)
	if err != nil {
		c.open.Add(-1)
		return nil, err
	}
	return &counter{fd: fd, of: c}, nil
}

func open(what node.MeterEvent, tid int) (int, error) {
	e, known := events[what.Name]
	if !known {
		return -1, omis.Errorf(omis.ParameterError, "no event %q is known; there are %s", what.Name, strings.Join(names(), ", "))
	}
	attr := e.attributes()
	if what.Alone {
		attr.Bits = attr.Bits&^(unix.PerfBitInherit|inheritThread) | unix.PerfBitPinned
	}
	const anyProcessor, noGroup = -1, -1
	fd, err := unix.PerfEventOpen(&attr, tid, anyProcessor, noGroup, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return -1, explain(what.Name, tid, err)
	}
	return fd, nil
}

// explain says why an event cannot be counted, and what would help.
func explain(name string, tid int, err error) error {
	status, help := omis.OSError, ""
	switch {
	case errors.Is(err, unix.ESRCH):
		return omis.Errorf(omis.UnknownObject, "thread %d has ended", tid)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENODEV):
		status, help = omis.UnsupportedService, "; this machine has no such counter: a virtual machine shows one only if it has a PMU"
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		status, help = omis.NoPermission, "; the monitor needs CAP_PERFMON, or a lower sysctl kernel.perf_event_paranoid"
	case errors.Is(err, unix.EINVAL):
		status, help = omis.UnsupportedService, "; kernels before 5.13 cannot count the threads of a process together"
	}
	return omis.Errorf(status, "perf_event_open of %s: %v%s", name, err, help)
}

// counter is an event of a thread. Its methods are not called concurrently.
type counter struct {
	fd int
	of *Counters
}

// Read implements node.Meter.
func (c *counter) Read() (r node.MeterReading, err error) {
	var words [3]uint64
	buf := make([]byte, binary.Size(words))
	n, err := unix.Read(c.fd, buf)
	if err != nil {
		return r, os.NewSyscallError("read", err)
	}
	if n < len(buf) {
		return r, errors.New("the kernel does not count any more: more events are measured on regions than the processor has counters")
	}
	for i := range words {
		words[i] = binary.NativeEndian.Uint64(buf[8*i:])
	}
	return node.MeterReading{Count: words[0], Enabled: time.Duration(words[1]), Running: time.Duration(words[2])}, nil
}

// Close implements node.Meter.
func (c *counter) Close() error {
	c.of.open.Add(-1)
	return unix.Close(c.fd)
}
