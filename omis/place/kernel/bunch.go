//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"mirador/omis/host/proc"
	"mirador/omis/place/kernel/registrar"
	"mirador/omis/program"
)

// bunch is placed programs of one shape, at addresses of one file, whose uprobes are set
// and taken out together: by one link.
type bunch struct {
	placer  *Placer
	target  *target
	shape   *shape
	path    string
	serial  uint32
	link    link.Link
	members []*placed
}

// mostOfBunch bounds how many are in a bunch: where some are taken away, the others are
// set anew.
const mostOfBunch = 1000

// bunches groups programs that are about to be placed. The caller holds Placer.mu.
func (p *Placer) bunches(list []*placed) []*bunch {
	type alike struct {
		shape *shape
		path  string
		lasts bool
	}
	var all []*bunch
	growing := make(map[alike]*bunch)
	for _, pl := range list {
		key := alike{pl.shape, pl.site.path, pl.lasts}
		b := growing[key]
		if b == nil || len(b.members) == mostOfBunch {
			b = p.newBunch(pl)
			growing[key], all = b, append(all, b)
		}
		b.members = append(b.members, pl)
	}
	return all
}

func (p *Placer) newBunch(like *placed) *bunch {
	p.serial++
	return &bunch{placer: p, target: like.target, shape: like.shape, path: like.site.path, serial: p.serial}
}

// attach sets the uprobes. One that the kernel does not set fails all: then halves are
// tried. It returns the bunches that stand. The caller holds Placer.planting.
func (b *bunch) attach() []*bunch {
	err := b.set()
	if err == nil {
		b.bequeath(0)
		return []*bunch{b}
	}
	if len(b.members) == 1 {
		b.members[0].err = &program.Refusal{Why: unplanted(err, b.members[0].site)}
		return nil
	}
	return slices.Concat(b.split(0, len(b.members)/2).attach(), b.split(len(b.members)/2, len(b.members)).attach())
}

func (b *bunch) split(from, to int) *bunch {
	b.placer.mu.Lock()
	defer b.placer.mu.Unlock()
	part := b.placer.newBunch(b.members[from])
	part.members = b.members[from:to:to]
	return part
}

// set makes the link.
func (b *bunch) set() error {
	u := registrar.Uprobes{Program: b.shape.program, PID: b.target.proc.PID, Path: b.path}
	for _, pl := range b.members {
		u.Offsets = append(u.Offsets, pl.site.offset)
		u.Cookies = append(u.Cookies, uint64(b.serial)<<32|uint64(pl.spot))
	}
	b.changing()
	defer b.changed()
	var err error
	b.link, err = b.placer.uprobes.Set(u)
	return err
}

// unplanted says why there is no uprobe.
func unplanted(err error, s site) string {
	const notSupported = unix.Errno(524) // ENOTSUPP, which never was meant for user space
	switch {
	case errors.Is(err, ebpf.ErrNotSupported):
		return "this kernel sets no uprobes for a process by eBPF (it takes Linux 6.6)"
	case errors.Is(err, notSupported), errors.Is(err, unix.EINVAL):
		return fmt.Sprintf("the kernel sets no uprobe on the instruction at %#x of %s", s.offset, s.file)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return "the kernel forbids uprobes (the monitor lacks CAP_PERFMON, or the kernel is locked down)"
	}
	return fmt.Sprintf("no uprobe in %s: %v", s.file, err)
}

// without sets the uprobes of those anew that stay, and has the new link take over: all
// hits are counted, each by one of the two. The caller holds Placer.planting.
func (b *bunch) without(gone map[*placed]bool) error {
	b.placer.mu.Lock()
	next := b.placer.newBunch(b.members[0])
	b.placer.mu.Unlock()
	for _, pl := range b.members {
		if !gone[pl] {
			next.members = append(next.members, pl)
		}
	}
	if len(next.members) == 0 || proc.Alive(b.target.proc) != nil {
		return b.leave()
	}
	if err := next.set(); err != nil {
		return fmt.Errorf("uprobes stand on that should not: %w", err)
	}
	next.bequeath(b.serial)
	next.counts(b.serial)
	err := b.leave()
	next.counts(0)
	return err
}

// leave is close, of one whose placer goes on with others.
func (b *bunch) leave() error {
	b.placer.mu.Lock()
	gone := b.gone()
	b.placer.mu.Unlock()
	return b.close(gone)
}

// counts has the hits of a bunch count from now on, in place of those of a former one
// while that still stands.
func (b *bunch) counts(former uint32) {
	b.placer.mu.Lock()
	defer b.placer.mu.Unlock()
	for _, pl := range b.members {
		pl.bunch, pl.former = b, former
		pl.tell()
	}
}

// remove takes programs out, of all bunches at the same time: the kernel waits until
// nobody is in them. The caller holds Placer.planting.
func remove(list []*placed) error {
	gone := make(map[*placed]bool)
	var bunches []*bunch
	for _, pl := range list {
		gone[pl] = true
		if !slices.Contains(bunches, pl.bunch) {
			bunches = append(bunches, pl.bunch)
		}
	}
	errs := make([]error, len(bunches))
	var all sync.WaitGroup
	for i, b := range bunches {
		all.Go(func() { errs[i] = b.without(gone) })
	}
	all.Wait()
	return errors.Join(errs...)
}
