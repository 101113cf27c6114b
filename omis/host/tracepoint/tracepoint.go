//go:build linux

package tracepoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"mirador/omis"
)

// Set is a set of eBPF objects that are closed together.
type Set struct {
	purpose string
	closers []io.Closer
}

// NewSet returns an empty set. purpose completes "cannot …" in errors: "observe
// scheduling".
func NewSet(purpose string) *Set { return &Set{purpose: purpose} }

// Map makes a map that lives as long as the set.
func (s *Set) Map(spec *ebpf.MapSpec) (*ebpf.Map, error) {
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return nil, s.explain(err)
	}
	s.closers = append(s.closers, m)
	return m, nil
}

// Program loads a program for raw tracepoints.
func (s *Set) Program(code asm.Instructions) (*ebpf.Program, error) {
	// The kernel lets only programs under the GPL read its memory.
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.RawTracepoint, Instructions: code, License: "GPL"})
	if err != nil {
		return nil, s.explain(err)
	}
	s.closers = append(s.closers, p)
	return p, nil
}

// Attach runs a program at each occurrence of a tracepoint, on the whole machine, until
// the set is closed.
func (s *Set) Attach(name string, code asm.Instructions) error {
	_, err := s.Link(name, code)
	return err
}

// Link does what Attach does, and returns the link: if pinned, it outlives the set.
func (s *Set) Link(name string, code asm.Instructions) (link.Link, error) {
	p, err := s.Program(code)
	if err != nil {
		return nil, err
	}
	l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: name, Program: p})
	if err != nil {
		return nil, s.explain(err)
	}
	s.Add(l)
	return l, nil
}

// Add adds an object that the caller made.
func (s *Set) Add(c io.Closer) { s.closers = append(s.closers, c) }

// Close detaches the programs first and frees the maps last.
func (s *Set) Close() error {
	var errs []error
	for _, c := range slices.Backward(s.closers) {
		errs = append(errs, c.Close())
	}
	s.closers = nil
	return errors.Join(errs...)
}

func (s *Set) explain(err error) error {
	if missing := Missing(); len(missing) > 0 {
		return omis.Errorf(omis.NoPermission, "cannot %s: the monitor lacks %s", s.purpose, strings.Join(missing, " and "))
	}
	switch {
	case errors.Is(err, ebpf.ErrNotSupported):
		return omis.Errorf(omis.UnsupportedService, "cannot %s: this kernel has no raw tracepoints: %w", s.purpose, err)
	case errors.Is(err, unix.EPERM):
		return omis.Errorf(omis.NoPermission, "cannot %s: the kernel forbids it (locked down, or in a container): %w", s.purpose, err)
	case errors.Is(err, unix.ENOMEM):
		return omis.Errorf(omis.NoMemory, "cannot %s: %w", s.purpose, err)
	}
	return omis.Errorf(omis.OSError, "cannot %s: %w", s.purpose, err)
}

// needed are the capabilities that raw tracepoints require.
var needed = []struct {
	bit  int
	name string
}{{unix.CAP_BPF, "CAP_BPF"}, {unix.CAP_PERFMON, "CAP_PERFMON"}}

// Missing names the capabilities that this process lacks for raw tracepoints.
// CAP_SYS_ADMIN includes them.
func Missing() []string {
	have, err := effective()
	if err != nil || have>>unix.CAP_SYS_ADMIN&1 == 1 {
		return nil
	}
	var names []string
	for _, c := range needed {
		if have>>c.bit&1 == 0 {
			names = append(names, c.name)
		}
	}
	return names
}

// effective returns the capabilities of the calling thread; the Go runtime keeps them the
// same in all threads.
func effective() (uint64, error) {
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, fmt.Errorf("cannot read the capabilities of process %d: %w", os.Getpid(), err)
	}
	return uint64(data[1].Effective)<<32 | uint64(data[0].Effective), nil
}
