//go:build linux && amd64

package linux

import (
	"os"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/resident"
)

// arm makes the process able to pass breakpoints without a monitor: it maps the home, which is
// the arena with the resident handler and its table (package resident), installs the handler,
// and unblocks SIGTRAP in all threads.
func (s *space) arm(maps proc.Mappings, addr uint64) error {
	if s.armed {
		return nil
	}
	s.o.tracer.freeze(nil)
	defer s.o.tracer.thaw()
	if s.home == 0 {
		if err := s.moveIn(maps, addr); err != nil {
			return err
		}
	}
	s.o.masks.unblockAll()
	return s.install()
}

// moveIn finds the home that an earlier monitor made, or makes one.
func (s *space) moveIn(maps proc.Mappings, addr uint64) error {
	if s.findHome(maps) {
		return nil
	}
	home, err := s.mapArena(maps, addr)
	if err != nil {
		return err
	}
	if err := s.write(home, resident.Home(home).Image()); err != nil {
		return err
	}
	s.home = resident.Home(home)
	s.addArena(home, true)
	return nil
}

// findHome looks for a home and takes over its table. It removes breakpoints that an earlier
// monitor left.
func (s *space) findHome(maps proc.Mappings) bool {
	home, state, found := homeIn(s.memory, maps)
	if !found {
		return false
	}
	s.home, s.old, s.o.masks.opened = home, state.Old, state.Opened
	s.takeOver(state)
	return true
}

func (s *space) takeOver(state resident.State) {
	for i, addr := range state.Arenas {
		s.addArena(addr, i == 0)
	}
	for i, e := range state.Entries {
		b := &breakpoint{addr: e.Addr, copy: e.Copy, length: int(e.Length), original: e.Original, entry: i}
		s.table[e.Addr] = b
		if e.Standing {
			restore(s.o.proc.PID, s.memory, b)
			_ = s.enroll(b, false) // a write fails only if the program has ended
		}
		for j := range s.arenas {
			a := &s.arenas[j]
			if e.Copy >= a.next && e.Copy < a.last {
				a.next = e.Copy + resident.SlotSize
			}
		}
	}
	s.entries = len(state.Entries)
}

// install makes the resident handler the action for SIGTRAP. It records the program's own
// action first, because the handler needs it from its first call on.
func (s *space) install() error {
	t, err := s.o.injector.volunteer()
	if err != nil {
		return err
	}
	now, err := s.action(t, s.memory, unix.SIGTRAP)
	if err != nil {
		return err
	}
	if now.Handler != s.home.Handler() {
		s.old = now
		if err := s.write(s.home.Old(), now.Encode()); err != nil {
			return err
		}
	}
	if err := s.setAction(t, s.memory, unix.SIGTRAP, s.home.Action()); err != nil {
		s.leftover = true // the thread may still set the action
		return err
	}
	s.armed = true
	return s.o.masks.openHandlers(t)
}

// action reads, by a system call of a stopped thread, its process's action for a signal. The memory is that of
// the thread's process.
func (s *space) action(t *thread, memory *os.File, sig unix.Signal) (resident.Sigaction, error) {
	var block [resident.BlockSize]byte
	r, err := s.o.injector.call(t, memory, func(at uint64) resident.Call {
		return resident.Call{Number: unix.SYS_RT_SIGACTION, Args: [6]uint64{uint64(sig), 0, at, 8}}
	}, &block)
	if err != nil {
		return resident.Sigaction{}, err
	}
	if r != 0 {
		return resident.Sigaction{}, s.refusedCall("rt_sigaction", r)
	}
	return resident.ParseSigaction(block[:]), nil
}

// setAction sets, by a system call of a stopped thread, its process's action for a signal. The memory is that of
// the thread's process.
func (s *space) setAction(t *thread, memory *os.File, sig unix.Signal, act resident.Sigaction) error {
	var block [resident.BlockSize]byte
	copy(block[:], act.Encode())
	r, err := s.o.injector.call(t, memory, func(at uint64) resident.Call {
		return resident.Call{Number: unix.SYS_RT_SIGACTION, Args: [6]uint64{uint64(sig), at, 0, 8}}
	}, &block)
	if err != nil {
		return err
	}
	if r != 0 {
		return s.refusedCall("rt_sigaction", r)
	}
	return nil
}

func (s *space) refusedCall(name string, r int64) error {
	return omis.Errorf(omis.OSError, "process %d cannot be prepared for breakpoints: %s: %v", s.o.proc.PID, name, unix.Errno(-r))
}

// disarm restores the program's own action for SIGTRAP if the frozen process has no
// breakpoints any more. Home stays mapped, for the next time.
func (s *space) disarm() {
	if s.memory == nil || len(s.breakpoints) > 0 || !s.o.meeting.part() {
		return
	}
	if s.o.injector.awaitsSweep() || (s.armed || s.leftover) && !s.giveBack() {
		return // the handler stays, and passes signals on to the program's own
	}
	_ = s.o.node.warden.Drop(s.o.proc.PID)
	s.memory.Close()
	s.reset()
}

// giveBack restores the program's own actions for signals.
func (s *space) giveBack() bool {
	t, err := s.o.injector.volunteer()
	if err != nil {
		return false
	}
	s.o.masks.closeHandlers(t, s.memory)
	now, err := s.action(t, s.memory, unix.SIGTRAP)
	if err == nil && now.Handler == s.home.Handler() {
		_ = s.setAction(t, s.memory, unix.SIGTRAP, s.old)
	}
	s.armed = false
	if s.old.Handled() {
		for _, t := range s.o.tracer.threads {
			t.unblocked = false
		}
	}
	return true
}
