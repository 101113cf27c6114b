//go:build linux && amd64

package linux

import (
	"os"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/resident"
)

// arm makes the process able to pass breakpoints without us: home is mapped, the
// handler installed, SIGTRAP unblocked everywhere.
func (o *owner) arm(maps proc.Mappings, addr uint64) error {
	if o.space.armed {
		return nil
	}
	o.freeze(nil)
	defer o.thaw()
	if o.space.home == 0 {
		if err := o.moveIn(maps, addr); err != nil {
			return err
		}
	}
	o.unblockAll()
	return o.install()
}

// moveIn finds the home that an earlier monitor, or we, made, or makes one.
func (o *owner) moveIn(maps proc.Mappings, addr uint64) error {
	if o.findHome(maps) {
		return nil
	}
	home, err := o.mapArena(maps, addr)
	if err != nil {
		return err
	}
	if err := o.write(home, resident.Home(home).Image()); err != nil {
		return err
	}
	o.space.home = resident.Home(home)
	o.addArena(home, true)
	return nil
}

// findHome looks for a home and takes over what its table says. Breakpoints that
// still stand are nobody's: they are taken out.
func (o *owner) findHome(maps proc.Mappings) bool {
	home, s, found := homeIn(o.space.memory, maps)
	if !found {
		return false
	}
	o.space.home, o.space.old, o.space.opened = home, s.Old, s.Opened
	o.takeOver(s)
	return true
}

func (o *owner) takeOver(s resident.State) {
	for i, addr := range s.Arenas {
		o.addArena(addr, i == 0)
	}
	for i, e := range s.Entries {
		b := &breakpoint{addr: e.Addr, copy: e.Copy, length: int(e.Length), original: e.Original, entry: i}
		o.space.table[e.Addr] = b
		if e.Standing {
			restore(o.space.memory, b)
			_ = o.enroll(b, false) // what cannot be written has ended
		}
		for j := range o.space.arenas {
			a := &o.space.arenas[j]
			if e.Copy >= a.next && e.Copy < a.last {
				a.next = e.Copy + resident.SlotSize
			}
		}
	}
	o.space.entries = len(s.Entries)
}

// install makes the resident handler the action for SIGTRAP. The program's own
// action is noted first: the handler needs it from its first moment on.
func (o *owner) install() error {
	t, err := o.volunteer()
	if err != nil {
		return err
	}
	now, err := o.action(t, o.space.memory, unix.SIGTRAP)
	if err != nil {
		return err
	}
	if now.Handler != o.space.home.Handler() {
		o.space.old = now
		if err := o.write(o.space.home.Old(), now.Encode()); err != nil {
			return err
		}
	}
	if err := o.setAction(t, o.space.memory, unix.SIGTRAP, o.space.home.Action()); err != nil {
		o.space.leftover = true // the thread may set it yet
		return err
	}
	o.space.armed = true
	return o.openHandlers(t)
}

// action asks, by a stopped thread of the process that memory belongs to, for the
// action for a signal that is in force.
func (o *owner) action(t *thread, memory *os.File, sig unix.Signal) (resident.Sigaction, error) {
	var block [resident.BlockSize]byte
	r, err := o.call(t, memory, func(at uint64) resident.Call {
		return resident.Call{Number: unix.SYS_RT_SIGACTION, Args: [6]uint64{uint64(sig), 0, at, 8}}
	}, &block)
	if err != nil {
		return resident.Sigaction{}, err
	}
	if r != 0 {
		return resident.Sigaction{}, o.refusedCall("rt_sigaction", r)
	}
	return resident.ParseSigaction(block[:]), nil
}

// setAction sets the action for a signal, by a stopped thread of the process that
// memory belongs to.
func (o *owner) setAction(t *thread, memory *os.File, sig unix.Signal, act resident.Sigaction) error {
	var block [resident.BlockSize]byte
	copy(block[:], act.Encode())
	r, err := o.call(t, memory, func(at uint64) resident.Call {
		return resident.Call{Number: unix.SYS_RT_SIGACTION, Args: [6]uint64{uint64(sig), at, 0, 8}}
	}, &block)
	if err != nil {
		return err
	}
	if r != 0 {
		return o.refusedCall("rt_sigaction", r)
	}
	return nil
}

func (o *owner) refusedCall(name string, r int64) error {
	return omis.Errorf(omis.OSError, "process %d cannot be prepared for breakpoints: %s: %v", o.proc.PID, name, unix.Errno(-r))
}

// disarm gives SIGTRAP back to the program, which is frozen and has no breakpoint
// left. Home stays mapped, for next time.
func (o *owner) disarm() {
	if o.space.memory == nil || len(o.space.breakpoints) > 0 || !o.part() {
		return
	}
	if o.awaitsSweep() || (o.space.armed || o.space.leftover) && !o.giveBack() {
		return // the handler stays, it passes everything on to the program's own
	}
	_ = o.node.warden.Drop(o.proc.PID)
	o.space.memory.Close()
	o.space = &space{}
	o.veil.clear()
}

// giveBack makes the program's own actions for signals those in force.
func (o *owner) giveBack() bool {
	t, err := o.volunteer()
	if err != nil {
		return false
	}
	o.closeHandlers(t, o.space.memory)
	now, err := o.action(t, o.space.memory, unix.SIGTRAP)
	if err == nil && now.Handler == o.space.home.Handler() {
		_ = o.setAction(t, o.space.memory, unix.SIGTRAP, o.space.old)
	}
	o.space.armed = false
	if o.space.old.Handled() {
		for _, t := range o.threads {
			t.unblocked = false
		}
	}
	return true
}
