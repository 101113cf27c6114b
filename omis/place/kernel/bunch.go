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

// bunch is a group of placed programs of one shape at addresses of one file. One link sets and removes
// all of their uprobes.
type bunch struct {
	uprobes *uprobes
	target  *target
	shape   *shape
	path    string
	serial  uint32
	link    link.Link // nil: not set
	members []*placed
}

// mostOfBunch is the most members of a bunch. To remove some of them, all others are set again.
const mostOfBunch = 1000

// group divides programs into bunches. The caller holds memory.mu.
func (u *uprobes) group(list []*placed) []*bunch {
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
			b = u.newBunch(pl)
			growing[key], all = b, append(all, b)
		}
		b.members = append(b.members, pl)
	}
	return all
}

func (u *uprobes) newBunch(like *placed) *bunch {
	u.serial++
	return &bunch{uprobes: u, target: like.target, shape: like.shape, path: like.site.path, serial: u.serial}
}

// attach sets the uprobes, and returns the bunches that were set. If the kernel refuses one uprobe, it
// refuses the link; attach then tries both halves of the bunch. The caller holds uprobes.planting.
func (b *bunch) attach() []*bunch {
	err := b.set()
	if err == nil {
		b.uprobes.keeper.keepBunch(b, 0)
		return []*bunch{b}
	}
	if len(b.members) == 1 {
		b.members[0].err = &program.Refusal{Why: unplanted(err, b.members[0].site)}
		return nil
	}
	return slices.Concat(b.split(0, len(b.members)/2).attach(), b.split(len(b.members)/2, len(b.members)).attach())
}

func (b *bunch) split(from, to int) *bunch {
	b.uprobes.memory.mu.Lock()
	defer b.uprobes.memory.mu.Unlock()
	part := b.uprobes.newBunch(b.members[from])
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
	b.beginChange()
	defer b.endChange()
	var err error
	b.link, err = b.uprobes.client.Set(u)
	return err
}

// unplanted explains why the kernel refused a uprobe.
func unplanted(err error, s site) string {
	const notSupported = unix.Errno(524) // ENOTSUPP, an error that only the kernel itself should see
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

// without removes some members: it sets the uprobes of the other members by a new link, which replaces
// the old one. Each hit meanwhile is counted by one of the two links. The caller holds
// uprobes.planting.
func (b *bunch) without(gone map[*placed]bool) error {
	mu := &b.uprobes.memory.mu
	mu.Lock()
	next := b.uprobes.newBunch(b.members[0])
	mu.Unlock()
	for _, pl := range b.members {
		if !gone[pl] {
			next.members = append(next.members, pl)
		}
	}
	if len(next.members) == 0 || proc.Alive(b.target.proc) != nil {
		return b.leave()
	}
	if err := next.set(); err != nil {
		return fmt.Errorf("uprobes were not removed: %w", err)
	}
	b.uprobes.keeper.keepBunch(next, b.serial)
	next.counts(b.serial)
	err := b.leave()
	next.counts(0)
	return err
}

// leave removes the uprobes while the monitor goes on.
func (b *bunch) leave() error {
	b.uprobes.memory.mu.Lock()
	gone := b.gone()
	b.uprobes.memory.mu.Unlock()
	return b.close(gone)
}

// close removes the uprobes. gone lists the addresses that have no uprobe of ours afterwards.
func (b *bunch) close(gone *change) error {
	if b.link == nil {
		return nil
	}
	b.beginChange()
	defer func() {
		b.endChange()
		b.link = nil
	}()
	return errors.Join(b.uprobes.keeper.unkeepBunch(b), b.takeOut(gone))
}

// counts makes the hits of this bunch count from now on, instead of the hits of the bunch that it
// replaces, whose uprobes may still be set. former is the serial number of that bunch, 0 if there is
// none.
func (b *bunch) counts(former uint32) {
	b.uprobes.memory.mu.Lock()
	defer b.uprobes.memory.mu.Unlock()
	for _, pl := range b.members {
		pl.bunch, pl.former = b, former
		pl.tell()
	}
}

// remove removes programs of several bunches concurrently, because each removal waits until no thread
// runs the program. The caller holds uprobes.planting.
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
