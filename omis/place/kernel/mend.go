//go:build linux && amd64

package kernel

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/code/x86/landing"
	"mirador/omis/host/proc"
	"mirador/omis/place/kernel/code"
	"mirador/omis/place/kernel/persist"
	"mirador/omis/place/kernel/registrar"
)

// If the registrar is killed while the kernel sets or removes uprobes for it, some uprobes stay for
// ever: with SIGKILL pending, the kernel cannot access the memory of the target any more ("failed to
// unregister, leaking uprobe"). Such a leftover counts nothing, but each hit of it takes as long as
// before, and it blocks its address. The kernel removes a leftover together with the next uprobe that
// is set at its address and removed. So the monitor does that. It first records the addresses, in case
// the monitor is killed as well; then the next monitor does it.

// change has the addresses of uprobes that are being set or removed.
type change persist.Change

// beginChange records that the uprobes of a bunch are about to be set or removed, endChange that they
// have been.
func (b *bunch) beginChange() {
	r := persist.Change{Proc: b.target.proc}
	for _, pl := range b.members {
		r.Members = append(r.Members, pl.site.addr)
	}
	b.uprobes.keeper.put(persist.Changes, code.Unit(b.serial), r)
}

func (b *bunch) endChange() { b.uprobes.keeper.delete(persist.Changes, code.Unit(b.serial)) }

// takeOut removes the uprobes of a bunch, with a second registrar if the first is killed, and then
// checks the addresses that have no uprobe of ours any more: the kernel reports success also if it
// could not remove some of them.
func (b *bunch) takeOut(gone *change) error {
	u := b.uprobes
	err := u.client.TakeOut(b.link)
	if err == nil {
		left, failed := gone.mend(u.client, u.codes)
		if left > 0 {
			err = failed // this is not checked again: a uprobe that is still there belongs to another tool
		}
	}
	if errors.Is(err, registrar.ErrKilled) { // while it removed or checked them
		return gone.mendAfterwards(u.client, u.codes)
	}
	return err
}

// gone lists the addresses of the bunch that have no other uprobe of ours. At an address with another uprobe,
// the kernel removes a leftover together with that uprobe. The caller holds memory.mu.
func (b *bunch) gone() *change {
	r := &change{Proc: b.target.proc}
	for _, pl := range b.members {
		if pl.bunch == b && b.target.sites[pl.site.addr].count <= 1 {
			r.Members = append(r.Members, pl.site.addr)
		}
	}
	return r
}

// How often, and at what interval, mendAfterwards looks for leftovers.
const (
	looks     = 40
	lookEvery = 50 * time.Millisecond
)

// mendAfterwards calls mend until it finds no leftover twice in a row. If a link was on its way to the
// registrar when the registrar was killed, the kernel may release the link only some time later.
func (r *change) mendAfterwards(client *registrar.Client, codes *landing.Catalog) error {
	var failed error
	good := 0
	for range looks {
		left, err := r.mend(client, codes)
		if good++; left > 0 || err != nil {
			good, failed = 0, err
		}
		if good == 2 {
			return nil
		}
		time.Sleep(lookEvery)
	}
	return errors.Join(fmt.Errorf("process %d has uprobes that no tool has set, and that come back", r.Proc.PID), failed)
}

// mendAll removes the leftovers of a killed monitor. Uprobes whose links still exist stay.
func mendAll(s *persist.State, client *registrar.Client, codes *landing.Catalog) error {
	return persist.Each(s, persist.Changes, func(n uint32, r persist.Change) error {
		_, err := (*change)(&r).mend(client, codes)
		return errors.Join(err, persist.Delete(s, persist.Changes, n))
	})
}

// Mend removes the leftovers of a killed monitor that no other monitor replaces.
func Mend(client *registrar.Client, journal persist.Journal) error {
	awaitRegistrar(journal, ending, func(string) {})
	return mendAll(&persist.State{Journal: journal}, client, landing.NewCatalog())
}

// mend removes leftovers at the addresses, and returns how many it found.
func (r *change) mend(client *registrar.Client, codes *landing.Catalog) (left int, err error) {
	if proc.Alive(r.Proc) != nil {
		return 0, nil
	}
	sv, err := newSurvey(r.Proc.PID, codes, nil)
	if err != nil {
		return 0, err
	}
	defer sv.close()
	byFile := make(map[string][]uint64)
	var unseen error
	for _, addr := range r.Members {
		s, err := sv.site(addr)
		switch {
		case err == nil:
		case s.isTrapped(sv):
			byFile[s.path] = append(byFile[s.path], s.offset)
			left++
		case s.code == nil && sv.isMapped(addr):
			unseen = err
		}
	}
	if left == 0 {
		return 0, unseen
	}
	nothing, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return left, err
	}
	defer nothing.Close()
	var errs []error
	for path, offsets := range byFile {
		errs = append(errs, setAndTakeOut(client, registrar.Uprobes{Program: nothing, PID: r.Proc.PID, Path: path, Offsets: offsets}))
	}
	return left, errors.Join(errs...)
}

// isMapped reports whether an address is in code that uprobes can be set in.
func (sv *survey) isMapped(addr uint64) bool {
	m, ok := sv.maps.At(addr)
	return ok && m.Exec && m.Private && m.Inode != 0
}

// isTrapped reports whether the code at a site differs from the file only by a breakpoint.
func (s *site) isTrapped(sv *survey) bool {
	const int3 = 0xcc
	now := make([]byte, len(s.code))
	return len(now) > 0 && sv.memory.at(now, s.addr) == len(now) && now[0] == int3 && string(now[1:]) == string(s.code[1:])
}

func setAndTakeOut(client *registrar.Client, left registrar.Uprobes) error {
	l, err := client.Set(left)
	if err == nil {
		err = client.TakeOut(l)
	}
	if err != nil {
		return fmt.Errorf("process %d has uprobes that no tool has set, and that cannot be removed: %w", left.PID, err)
	}
	return nil
}

// ending is how long a monitor waits for the registrar of a killed monitor, which normally ends within
// tenths of a second.
const ending = time.Minute

// awakeEvery is how often a monitor sends SIGCONT to the registrar, which may be stopped. After silence
// the monitor reports that it is waiting.
const (
	awakeEvery = 100 * time.Millisecond
	silence    = time.Second
)

// awaitRegistrar waits until the registrar of a killed monitor has ended: it still completes what it is
// doing, so uprobes may appear that the new monitor does not know. A stopped registrar would never end,
// so it gets SIGCONT. If that does not help (a frozen cgroup, a debugger), awaitRegistrar reports it and
// gives up after limit.
func awaitRegistrar(journal persist.Journal, limit time.Duration, notice func(string)) {
	var id omis.ProcID
	if known, err := journal.Get(persist.RegistrarKey, &id); !known || err != nil {
		return
	}
	fd, err := unix.PidfdOpen(id.PID, 0) // a signal cannot reach another process that gets this id later
	if err != nil {
		return
	}
	defer unix.Close(fd)
	began := time.Now()
	told, awake := false, began
	for proc.Alive(id) == nil {
		waited := time.Since(began)
		if waited > limit {
			notice(fmt.Sprintf("process %d, which sets uprobes for the former gateway, has not ended in %v: going on without it; uprobes that it holds may stand until it ends (is it frozen, or held by a debugger?)", id.PID, limit))
			return
		}
		if time.Since(awake) > awakeEvery {
			awake = time.Now()
			_ = unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0) // it may have ended
		}
		if !told && waited > silence {
			told = true
			notice(fmt.Sprintf("waiting up to %v for process %d, which sets uprobes for the former gateway, to end", limit, id.PID))
		}
		time.Sleep(5 * time.Millisecond)
	}
}
