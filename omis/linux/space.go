//go:build linux && amd64

package linux

import (
	"bytes"
	"errors"
	"io"
	"os"

	"mirador/omis"
	"mirador/omis/code/x86/landing"
	"mirador/omis/code/x86/relocate"
	"mirador/omis/host/proc"
	"mirador/omis/linux/resident"
	"mirador/omis/linux/warden"
)

const int3 = 0xcc

// space owns what the monitor has written into the memory of a process: breakpoints, the
// copies of the instructions that they displace, and the resident handler. As long as the
// process runs its program, nothing in table and arenas is freed: a thread may be on its
// way to it for any length of time.
//
// It belongs to the owner's goroutine.
type space struct {
	o *owner

	memory      *os.File
	home        resident.Home // 0 before it exists
	arenas      []arena
	table       map[uint64]*breakpoint // all breakpoints that ever existed
	entries     int                    // used in the resident table
	breakpoints map[uint64]*breakpoint // those that exist now
	armed       bool                   // the resident handler is installed
	leftover    bool                   // an earlier monitor may have installed it
	old         resident.Sigaction     // what was installed before
}

// reset forgets the memory of a program that has ended.
func (s *space) reset() {
	*s = space{o: s.o}
	s.o.masks.reset()
	s.o.veil.clear()
}

type arena struct {
	addr       uint64
	next, last uint64 // free slots
}

// breakpoint is a place that has an INT3, or had one.
type breakpoint struct {
	addr, copy uint64
	length     int // of the displaced instruction
	original   byte
	code       []byte // the displaced instruction; nil if an earlier monitor displaced it
	entry      int    // in the resident table
	standing   bool   // as recorded in the resident table
	watches    []*watch
	lost       bool             // another tool has removed the INT3, once or more
	runtime    *landing.Runtime // not nil if the code is Go
}

func (b *breakpoint) residentEntry() resident.Entry {
	return resident.Entry{Addr: b.addr, Copy: b.copy, Original: b.original, Length: uint64(b.length), Standing: b.standing}
}

// restore removes an INT3 from the memory of a process if it is there.
func restore(pid int, memory *os.File, b *breakpoint) {
	if isThere(pid, memory, b.addr) {
		_, _ = memory.WriteAt([]byte{b.original}, int64(b.addr))
	}
}

// isThere reports whether the INT3 of a breakpoint is still in the memory of a process. The process may have mapped
// other code in the place of the breakpoint's, which has the same byte there: then the page is one of a file, until
// the process itself or another tool writes to it.
func isThere(pid int, memory *os.File, addr uint64) bool {
	var now [1]byte
	_, err := memory.ReadAt(now[:], int64(addr))
	return err == nil && now[0] == int3 && !proc.IsOfFile(pid, addr)
}

// plant makes a breakpoint at addr.
func (s *space) plant(addr uint64) (*breakpoint, error) {
	if b := s.breakpoints[addr]; b != nil {
		if s.stands(b) {
			return b, nil
		}
		s.forgetBreakpoint(b)
	}
	if err := s.settleIn(); err != nil {
		return nil, err
	}
	if err := s.o.meeting.giveWay(addr, 1); err != nil {
		return nil, err
	}
	if b := s.breakpoints[addr]; b != nil {
		return b, nil // the jump there was replaced by a breakpoint
	}
	if s.o.patcher.isPatched(addr, addr+1) {
		return nil, omis.Errorf(omis.UnsupportedService, "no breakpoint is possible at %#x: the code of a probe is there", addr)
	}
	b, err := s.ready(addr)
	if err != nil {
		return nil, err
	}
	return b, s.stand(b)
}

// ready prepares a breakpoint at addr.
func (s *space) ready(addr uint64) (*breakpoint, error) {
	maps, err := proc.Maps(s.o.proc.PID)
	if err != nil {
		return nil, err
	}
	if m, ok := maps.At(addr); !ok || !m.Exec || !m.Private {
		return nil, omis.Errorf(omis.ParameterError, "process %d has no code at %#x", s.o.proc.PID, addr)
	}
	if err := s.arm(maps, addr); err != nil {
		return nil, err
	}
	return s.makeReady(maps, addr)
}

// stand writes the INT3 of a breakpoint that is ready.
func (s *space) stand(b *breakpoint) error {
	if err := s.tellWarden(b); err != nil {
		return err
	}
	if err := s.enroll(b, true); err != nil {
		return err
	}
	if err := s.write(b.addr, []byte{int3}); err != nil {
		return err
	}
	s.breakpoints[b.addr] = b
	return nil
}

// tellWarden tells the warden of a breakpoint that is about to be written.
func (s *space) tellWarden(b *breakpoint) error {
	return s.o.node.warden.Plant(s.o.proc.PID, b.addr, warden.Patch{
		Standing: []byte{int3}, Displaced: []byte{b.original}, Mark: s.home.Mark(b.entry),
	})
}

// enroll records in the resident table whether a breakpoint exists, for a later monitor:
// before its INT3 is written, and after it was removed.
func (s *space) enroll(b *breakpoint, standing bool) error {
	b.standing = standing
	return s.write(s.home.Entry(b.entry), b.residentEntry().Encode())
}

// settleIn opens the memory, and tells the warden to guard the process.
func (s *space) settleIn() error {
	if s.memory != nil {
		return nil
	}
	memory, err := openMemory(s.o.proc.PID)
	if err != nil {
		return s.o.tracer.refused(err)
	}
	if err := s.o.node.warden.Hold(s.o.proc.PID, memory); err != nil {
		memory.Close()
		return err
	}
	s.memory, s.table, s.breakpoints = memory, make(map[uint64]*breakpoint), make(map[uint64]*breakpoint)
	return s.o.meeting.findSite()
}

// makeReady finds or makes the copy and the table entry for a breakpoint.
func (s *space) makeReady(maps proc.Mappings, addr uint64) (*breakpoint, error) {
	code := make([]byte, relocate.MaxLen)
	n, err := s.memory.ReadAt(code, int64(addr))
	if n == 0 {
		return nil, s.memoryError(addr, err)
	}
	code = s.unpatched(addr, code[:n])
	if b := s.table[addr]; b != nil && b.code != nil && bytes.HasPrefix(code, b.code) {
		return b, nil
	}
	if s.hasOther(maps, addr, code) {
		return nil, omis.Errorf(omis.UnsupportedService, "no breakpoint is possible at %#x: another tool's uprobe or breakpoint is there", addr)
	}
	slot, err := s.slot(maps, addr)
	if err != nil {
		return nil, err
	}
	c, err := relocate.Instruction(code, addr, slot.next)
	if err != nil {
		return nil, omis.Errorf(omis.UnsupportedService, "%w", err)
	}
	m, _ := maps.At(addr)
	runtime, err := s.o.node.codes.Runtime(s.o.proc.PID, m, addr)
	if err != nil {
		runtime = nil // the code is of no file, so it is not Go
	}
	b := &breakpoint{runtime: runtime, addr: addr, copy: slot.next, length: c.Length, original: code[0], code: code[:c.Length], entry: s.entries}
	if former := s.table[addr]; former != nil {
		b.entry = former.entry // other code was loaded there meanwhile
	}
	if err := s.enter(b, c.Code); err != nil {
		return nil, err
	}
	slot.next += resident.SlotSize
	return b, nil
}

// enter writes the copy, the entry, and then the count that makes the entry valid.
func (s *space) enter(b *breakpoint, copied []byte) error {
	if b.entry >= resident.MaxEntries {
		return omis.Errorf(omis.NoMemory, "process %d has had %d breakpoints, there is no room for more", s.o.proc.PID, b.entry)
	}
	if err := s.write(b.copy, copied); err != nil {
		return err
	}
	if err := s.write(s.home.Entry(b.entry), b.residentEntry().Encode()); err != nil {
		return err
	}
	if b.entry == s.entries {
		if err := s.write(s.home.Count(), word(uint64(b.entry+1))); err != nil {
			return err
		}
		s.entries++
	}
	s.table[b.addr] = b
	s.o.veil.put(b.addr, b.original)
	return nil
}

// unpatched returns code with the original bytes at breakpoints, jumps and patches.
func (s *space) unpatched(addr uint64, code []byte) []byte {
	if s.o.meeting.site != nil {
		s.o.meeting.site.Unpatched(addr, code)
	}
	if g := s.o.node.grounds.of(s.o.proc); g != nil {
		g.site.Hide(addr, code)
	}
	for i := range code {
		if b := s.breakpoints[addr+uint64(i)]; b != nil {
			code[i] = b.original
		}
	}
	return code
}

// uproot removes the INT3 of a breakpoint. Its copy and its table entry stay, since a thread
// may just have run into it.
func (s *space) uproot(b *breakpoint) error {
	if !s.stands(b) {
		s.forgetBreakpoint(b)
		return nil
	}
	if err := s.write(b.addr, []byte{b.original}); err != nil {
		return err
	}
	delete(s.breakpoints, b.addr)
	if err := s.enroll(b, false); err != nil {
		return err
	}
	return s.o.node.warden.Clear(s.o.proc.PID, b.addr)
}

// stands reports whether the INT3 is still there: the program may have unmapped the code, and
// mapped other code in its place.
func (s *space) stands(b *breakpoint) bool { return isThere(s.o.proc.PID, s.memory, b.addr) }

// forgetBreakpoint removes a breakpoint whose code was unmapped.
func (s *space) forgetBreakpoint(b *breakpoint) {
	delete(s.breakpoints, b.addr)
	b.watches = nil
	// If this fails, the warden finds no INT3 there.
	_ = s.o.node.warden.Clear(s.o.proc.PID, b.addr)
	_ = s.enroll(b, false) // a write fails only if the program has ended
}

// vacate forgets a memory that execve or the process's end has freed.
func (s *space) vacate() {
	for _, b := range s.breakpoints {
		for _, w := range b.watches {
			delete(s.o.events.watches, w)
		}
	}
	s.o.meeting.end()
	s.o.node.grounds.forget(s.o.proc)
	if s.memory != nil {
		// If this fails, the warden finds that the memory does not exist.
		_ = s.o.node.warden.Drop(s.o.proc.PID)
		s.memory.Close()
	}
	s.reset()
	s.o.library.forget()
}

func (s *space) write(addr uint64, b []byte) error {
	if _, err := s.memory.WriteAt(b, int64(addr)); err != nil {
		return s.memoryError(addr, err)
	}
	return nil
}

func (s *space) memoryError(addr uint64, err error) error {
	// The memory of an ended program reads and writes as an empty file.
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ended(s.o.proc.PID)
	}
	return omis.Errorf(omis.OSError, "cannot access address %#x of process %d: %w", addr, s.o.proc.PID, unwrapPath(err))
}

// unwrapPath removes the file name, which means nothing to a user.
func unwrapPath(err error) error {
	if e, ok := err.(*os.PathError); ok {
		return e.Err
	}
	return err
}
