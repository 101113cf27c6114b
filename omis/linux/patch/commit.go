//go:build linux && amd64

package patch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"

	"golang.org/x/sys/unix"

	"mirador/omis/code/x86/detour"
	"mirador/omis/code/x86/landing"
)

// Process is a process whose threads are all stopped.
type Process interface {
	// Call makes one of the threads execute a system call and returns the result, -errno if the
	// kernel refuses. The error is for calls that could not be made at all.
	Call(number uint64, args ...uint64) (int64, error)
	// CallOn is Call for a system call whose first argument is the address of a string.
	CallOn(s string, number uint64, more ...uint64) (int64, error)
	// Threads returns the threads of the process.
	Threads() ([]Thread, error)
	// Held returns the addresses on the threads' stacks to which signal handlers will return and
	// for which pick returns true.
	Held(pick func(addr uint64) bool) ([]uint64, error)
	// Redirect has signal handlers that will return to some addresses return to others.
	Redirect(to map[uint64]uint64) error
	// Parked is Held for the stacks of goroutines, where Go's scheduler may continue them.
	Parked(where landing.Goroutines, pick func(addr uint64) bool) ([]uint64, error)
}

// Thread is a stopped thread.
type Thread struct {
	TID  int
	PC   uint64                // if the thread is in code of the monitor, the address to which that code leads
	Move func(pc uint64) error // nil if the thread cannot be moved
}

// ErrRaced reports that the process has changed too much since a batch was prepared. Another batch
// may succeed.
var ErrRaced = errors.New("the process has changed meanwhile")

// passing is a temporary reason; errors.Is takes it for ErrRaced.
type passing string

func (p passing) Error() string { return string(p) }

func (p passing) Is(target error) bool { return target == ErrRaced }

// NeedsRoom reports whether the process must map memory for a batch.
func (b *Batch) NeedsRoom() bool { return len(b.arenas) > 0 }

// Furnish makes the process map the memory for a batch. At least one thread must be stopped.
func (b *Batch) Furnish(process Process) error {
	for len(b.arenas) > 0 {
		a := b.arenas[0]
		if err := a.mapIn(process); err != nil {
			return err
		}
		if err := b.open(a); err != nil {
			return err
		}
		b.arenas = b.arenas[1:]
	}
	return nil
}

// Commit makes the changes of a batch in the stopped process. If err, the error of an earlier step,
// is not nil, Commit makes none. Batch.Results returns the result of each change. Threads may
// remain in stubs of former places; see Site.Inside.
func (b *Batch) Commit(process Process, err error) error {
	if err == nil {
		b.compare()
		err = b.clearWay(process)
	}
	if err != nil {
		for _, c := range b.changes {
			c.err = err
		}
	}
	b.replace()
	return err
}

// Fill writes the stubs. The process may run, since no jump leads to them yet.
func (b *Batch) Fill() error {
	for _, w := range merged(b.writes) {
		if _, err := b.site.memory.WriteAt(w.bytes, int64(w.addr)); err != nil {
			return err
		}
	}
	for _, a := range b.site.arenas {
		if a.recorded == a.used {
			continue
		}
		if err := b.site.writeWord(a.code()+headUsed, a.used); err != nil {
			return err
		}
		a.recorded = a.used
	}
	return nil
}

// open writes the head of an arena, by which later monitors find it.
func (b *Batch) open(a *arena) error {
	s := b.site
	if err := s.writeWord(a.addr+arenaAlive, 1); err != nil {
		return err
	}
	if _, err := s.memory.WriteAt(a.head(s.base, s.shared), int64(a.code())); err != nil {
		return err
	}
	a.recorded = headSize
	s.note(append(slices.Clone(s.arenas), a), slices.Clone(s.places), s.retired)
	return nil
}

func (s *Site) writeWord(addr, v uint64) error {
	_, err := s.memory.WriteAt(binary.LittleEndian.AppendUint64(nil, v), int64(addr))
	return err
}

// mapIn makes the process map an arena. The code is not writable there; the monitor writes it as a
// tracer does.
func (a *arena) mapIn(process Process) error {
	r, err := process.Call(unix.SYS_MMAP, a.addr, a.length(), unix.PROT_READ|unix.PROT_EXEC,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE|unix.MAP_FIXED_NOREPLACE, ^uint64(0), 0)
	switch {
	case err != nil:
		return err
	case unix.Errno(-r) == unix.EEXIST:
		return ErrRaced
	case r != int64(a.addr):
		return refused("mmap", r)
	}
	if err := succeeds(process, "mprotect", unix.SYS_MPROTECT, a.addr, a.switches, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return err
	}
	return succeeds(process, "madvise", unix.SYS_MADVISE, a.addr, a.switches, unix.MADV_WIPEONFORK)
}

func succeeds(process Process, name string, number uint64, args ...uint64) error {
	r, err := process.Call(number, args...)
	if err == nil && r != 0 {
		err = refused(name, r)
	}
	return err
}

func refused(name string, r int64) error {
	return fmt.Errorf("the process is refused %s: %w", name, unix.Errno(-r))
}

// merged returns the writes in ascending order, and combines adjacent ones.
func merged(writes []write) []write {
	slices.SortFunc(writes, func(a, b write) int { return compare(a.addr, b.addr) })
	var all []write
	for _, w := range writes {
		if n := len(all); n > 0 && all[n-1].addr+uint64(len(all[n-1].bytes)) == w.addr {
			all[n-1].bytes = append(all[n-1].bytes, w.bytes...)
			continue
		}
		all = append(all, w)
	}
	return all
}

// compare checks that the windows contain the expected bytes, which another tool may have changed.
func (b *Batch) compare() {
	const gap = 1 << 16 // reading a smaller gap costs less than another system call
	for first := 0; first < len(b.changes); {
		begin, end := b.changes[first].Addr, b.changes[first].End()
		last := first + 1
		for last < len(b.changes) && b.changes[last].Addr < end+gap {
			end = b.changes[last].End()
			last++
		}
		now := make([]byte, end-begin)
		_, err := b.site.memory.ReadAt(now, int64(begin))
		for _, c := range b.changes[first:last] {
			if err != nil {
				now = make([]byte, c.Length())
				begin = c.Addr
				if _, e := b.site.memory.ReadAt(now, int64(begin)); e != nil {
					c.lose("its code is not there any more")
					continue
				}
			}
			c.compare(now[c.Addr-begin:][:c.Length()])
		}
		first = last
	}
}

func (c *change) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// lose reports that a window does not contain the expected bytes. A former place there is gone, and
// later changes ignore it.
func (c *change) lose(why string) {
	if c.former == nil {
		c.fail(errors.New(why))
		return
	}
	c.former.gone = true
	c.fail(passing(why))
}

// compare compares the window with its present bytes.
func (c *change) compare(now []byte) {
	want := slices.Clone(c.Code)
	if c.former != nil {
		jump := c.former.jump()
		copy(want, jump[:])
	}
	if !slices.Equal(now, want) {
		c.lose("the program's code differs from its file: another tool has changed it, or a breakpoint is too near")
	}
}

// clearWay makes sure that no thread is where a jump will be, or returns there from a signal
// handler. It moves such a thread, or the change fails.
func (b *Batch) clearWay(process Process) error {
	var planted []*change
	for _, c := range b.changes {
		if c.err == nil && c.made != nil {
			planted = append(planted, c)
		}
	}
	passes := b.allPasses()
	if len(planted)+len(passes) == 0 {
		return nil
	}
	threads, err := process.Threads()
	if err != nil {
		return err
	}
	inside := func(addr uint64) *change { return overwriting(planted, addr) }
	leads := func(addr uint64) uint64 {
		if to, ok := b.site.Leads(addr); ok {
			return to
		}
		return addr
	}
	leadIns := b.leadIns(planted)
	held, err := process.Held(func(addr uint64) bool {
		return inside(leads(addr)) != nil || passes[addr].fresh || changeAhead(leadIns, addr) != nil
	})
	if err != nil {
		return err
	}
	for _, addr := range held {
		if c := inside(leads(addr)); c != nil {
			c.fail(passing("a signal handler may return to its middle"))
		} else if c := changeAhead(leadIns, addr); c != nil {
			c.fail(passing("a signal handler may return to the first instructions of the function"))
		} else {
			passes[addr].fail(passing("a signal handler may return after the first instruction of the function"))
		}
	}
	for _, t := range threads {
		if c := changeAhead(leadIns, t.PC); c != nil {
			c.fail(passing("a thread is at the first instructions of the function"))
		}
	}
	b.clearOfGoroutines(process, planted)
	if err := moveThreads(threads, passes, func(pc uint64) *change { return inside(leads(pc)) }); err != nil {
		return err
	}
	return redirect(process, passes)
}

// redirect moves interrupted threads into the stubs of removed code that they must still execute.
func redirect(process Process, passes map[uint64]pass) error {
	to := make(map[uint64]uint64)
	for addr, p := range passes {
		if !p.fresh && p.err == nil {
			to[addr] = p.to
		}
	}
	if len(to) == 0 {
		return nil
	}
	return process.Redirect(to)
}

// moveThreads moves threads that are where jumps will be. It first finds the changes that fail
// because a thread cannot be moved, since no thread may be moved into the stub of such a change.
func moveThreads(threads []Thread, passes map[uint64]pass, inside func(pc uint64) *change) error {
	type step struct {
		*change
		move func(uint64) error
		to   uint64
	}
	var steps []step
	for _, t := range threads {
		s := step{move: t.Move}
		if p, ok := passes[t.PC]; ok {
			s.change, s.to = p.change, p.to
			if t.Move == nil && p.fresh {
				p.fail(passing("a thread is after the first instruction of the function"))
			}
		} else if s.change = inside(t.PC); s.change != nil && s.err == nil {
			if s.to, ok = s.made.moved(t.PC); !ok || t.Move == nil {
				s.fail(passing("a thread is in its middle"))
			}
		}
		if s.change != nil && t.Move != nil {
			steps = append(steps, s)
		}
	}
	for _, s := range steps {
		if s.err == nil {
			if err := s.move(s.to); err != nil {
				return err
			}
		}
	}
	return nil
}

// overwriting returns the change whose jump will overwrite the middle of the code at addr, or nil:
// addr is inside the jump but not at its beginning. The changes are in ascending order.
func overwriting(some []*change, addr uint64) *change {
	if len(some) == 0 || addr <= some[0].Addr || addr >= some[len(some)-1].End() {
		return nil
	}
	i := sort.Search(len(some), func(i int) bool { return some[i].Addr+detour.JumpSize > addr })
	if i < len(some) && some[i].Addr < addr {
		return some[i]
	}
	return nil
}

// clearOfGoroutines makes the changes fail whose jumps would be where a goroutine continues.
func (b *Batch) clearOfGoroutines(process Process, planted []*change) {
	programs := make(map[landing.Goroutines][]*change)
	for _, c := range planted {
		if c.err == nil && c.sleepers != nil {
			programs[*c.sleepers] = append(programs[*c.sleepers], c)
		}
	}
	for where, some := range programs {
		leadIns := b.leadIns(some)
		parked, err := process.Parked(where, func(addr uint64) bool {
			return overwriting(some, addr) != nil || changeAhead(leadIns, addr) != nil
		})
		for _, c := range some {
			if err != nil {
				c.fail(fmt.Errorf("a goroutine may have been interrupted in its middle: %w", err))
			}
		}
		for _, addr := range parked {
			if c := overwriting(some, addr); c != nil {
				c.fail(passing("a goroutine was interrupted in its middle"))
			} else {
				changeAhead(leadIns, addr).fail(passing("a goroutine was interrupted at the first instructions of the function"))
			}
		}
	}
}

// replace writes the jumps and updates the tables of the site.
func (b *Batch) replace() {
	s := b.site
	b.writeJumps()
	former := make(map[*place]bool)
	retired := slices.Clone(s.retired)
	var places []*place
	for _, c := range b.changes {
		if c.err != nil {
			s.discard(c.made)
			s.releaseAll(b.freshOf(c))
		} else if c.made != nil {
			places = append(places, c.made)
		}
		if p := c.former; p != nil && (c.err == nil || p.gone) {
			former[p] = true
			retired = append(retired, p)
		}
	}
	for _, p := range s.places {
		if !former[p] {
			places = append(places, p)
		}
	}
	s.note(s.arenas, places, retired)
}

// writeJumps writes jumps and removes jumps, each by its own write, which the kernel executes
// completely or not at all, even if the monitor is killed. It does not write the bytes between two
// jumps, because another tool may set or remove a uprobe there meanwhile.
func (b *Batch) writeJumps() {
	for _, c := range b.changes {
		if c.err == nil {
			text := make([]byte, detour.JumpSize)
			c.put(text)
			_, c.err = b.site.memory.WriteAt(text, int64(c.Addr))
		}
	}
}

// put copies the new first bytes of the window into text.
func (c *change) put(text []byte) {
	if c.made == nil {
		copy(text, c.Code[:detour.JumpSize])
		return
	}
	jump := c.made.jump()
	copy(text, jump[:])
}

// discard frees the block of a stub to which no jump leads.
func (s *Site) discard(p *place) {
	if p == nil {
		return
	}
	for _, a := range s.arenas {
		if a.contains(p.block.addr) {
			_ = s.writeWord(p.block.addr, p.block.state(holdsNothing)) // fails only if the process has ended
			a.free = append(a.free, p.block)
		}
	}
}
