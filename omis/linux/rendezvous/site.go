//go:build linux && amd64

package rendezvous

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/code/x86/detour"
)

// Target is a process in the hands of a tracer. It is asked for things only
// during calls of Adopt and the methods of Site, for which all of its threads
// must be stopped.
type Target interface {
	io.ReaderAt // its memory, by address
	io.WriterAt
	PID() int
	// Call has one of the threads make a system call, and returns its result:
	// -errno where the kernel refuses it. The error is for calls that could not
	// be made at all.
	Call(number uint64, args ...uint64) (int64, error)
}

// Config is what a site has to be told.
type Config struct {
	// Vacancies proposes page-aligned addresses with room for ArenaSize bytes
	// near an address of the program, the best first.
	Vacancies func(near uint64) []uint64

	// Patience is how long a thread is held by a monitor that does not stir,
	// because it is stopped, say. It is rounded to tenths of a second; 0 means
	// for ever.
	Patience time.Duration
}

// Site is the rendezvous in one target.
type Site struct {
	target Target
	config Config
	memory *memory // nil as long as there is no board
	at     uint64  // where the target has the board
	arenas []arena
	places map[uint64]*place   // by address; all that ever stood
	former map[uint64][]uint64 // stubs of an earlier monitor, by the address of their places
}

// place is where a jump stands, or stood.
type place struct {
	Plan
	stub   uint64
	moved  []int
	stands bool
}

// share makes the board in the target; name is the address of a string there.
func (s *Site) share(name uint64) error {
	fd, err := s.target.Call(unix.SYS_MEMFD_CREATE, name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return err
	}
	if fd < 0 {
		return callError("memfd_create", fd)
	}
	m, err := openMemory(s.target.PID(), int(fd))
	if err == nil {
		s.at, err = s.mapBoard(uint64(fd))
	}
	// The mapping keeps the memory; the program wants its descriptors to itself.
	if _, e := s.target.Call(unix.SYS_CLOSE, uint64(fd)); err == nil {
		err = e
	}
	if err != nil {
		if m != nil {
			m.close()
		}
		return err
	}
	s.memory = m
	s.memory.board.patience = uint32(s.config.Patience / nap)
	s.memory.board.queuing = uint32(s.config.Patience / turn)
	return nil
}

func (s *Site) mapBoard(fd uint64) (uint64, error) {
	r, err := s.target.Call(unix.SYS_MMAP, 0, boardSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED, fd, 0)
	if err == nil && r < 0 && r > -4096 {
		err = callError("mmap", r)
	}
	return uint64(r), err
}

func callError(name string, r int64) error {
	return fmt.Errorf("the process is refused %s: %w", name, unix.Errno(-r))
}

// Prepare makes the stub for a place, and what all places need, as far as it is
// not there. The jump is not there yet: first, threads that stand inside the place
// go on elsewhere (see Moved), so that the monitor may die at any time in between.
func (s *Site) Prepare(p Plan) error {
	old := s.places[p.Addr]
	if old != nil && string(old.Code) == string(p.Code) || s.reuse(&p) {
		return s.meet(s.arenas[0])
	}
	a, err := s.arenaFor(p.Addr)
	if err != nil {
		return err
	}
	if err := s.meet(*a); err != nil {
		return err
	}
	at := a.stub(a.used)
	code, moved, err := encodeStub(&p, at, a.addr+arenaCode)
	if err != nil {
		return err
	}
	if _, err := s.target.WriteAt(code, int64(at)); err != nil {
		return err
	}
	a.used++
	s.places[p.Addr] = &place{Plan: p, stub: at, moved: moved}
	return nil
}

// meet makes the board, if there is none, and has all arenas use it.
func (s *Site) meet(a arena) error {
	if s.memory != nil {
		return nil
	}
	if err := s.share(a.addr + arenaMagic); err != nil {
		return err
	}
	for _, a := range s.arenas {
		if err := errors.Join(s.wipe(a), s.point(a, s.at)); err != nil {
			return err
		}
	}
	return nil
}

// reuse finds a stub that an earlier monitor left and that is the one that would
// be made.
func (s *Site) reuse(p *Plan) bool {
	for _, at := range s.former[p.Addr] {
		i := slices.IndexFunc(s.arenas, func(a arena) bool { return a.contains(at) })
		code, moved, err := encodeStub(p, at, s.arenas[i].addr+arenaCode)
		if err != nil {
			continue
		}
		now := make([]byte, len(code))
		if _, err := s.target.ReadAt(now, int64(at)); err == nil && string(now) == string(code) {
			s.places[p.Addr] = &place{Plan: *p, stub: at, moved: moved}
			return true
		}
	}
	return false
}

// Plant puts the jump at a place that was prepared. No thread may stand inside
// it, nor come back there from a signal handler (see Plan.Inside). Hits reach a
// Server; without one, threads go on.
func (s *Site) Plant(addr uint64) error {
	p := s.places[addr]
	if p == nil {
		return &Refusal{addr, "nothing was prepared for it"}
	}
	j := p.jump()
	err := writeWord(s.target, p.Addr, j[:])
	p.stands = p.stands || err == nil
	return err
}

func (p *place) jump() [jumpSize]byte { return detour.Jump(p.Addr, p.stub+stubEntry) }

// arenaFor finds an arena with a free stub near an address, or makes one.
func (s *Site) arenaFor(addr uint64) (*arena, error) {
	for i := range s.arenas {
		if a := &s.arenas[i]; a.near(addr) && a.used < arenaRoom {
			return a, nil
		}
	}
	a, err := s.newArena(addr)
	if err != nil {
		return nil, err
	}
	if s.memory != nil {
		if err := s.point(a, s.at); err != nil {
			return nil, err
		}
	}
	s.arenas = append(s.arenas, a)
	return &s.arenas[len(s.arenas)-1], nil
}

// Remove puts the program's own bytes back, unless something else is there by
// now. The stub stays: threads may be in it, and go on from there.
func (s *Site) Remove(addr uint64) error {
	p := s.places[addr]
	if p == nil || !p.stands {
		return nil
	}
	err := p.restore(s.target)
	p.stands = err != nil
	return err
}

func (p *place) restore(memory Memory) error {
	var now [jumpSize]byte
	if _, err := memory.ReadAt(now[:], int64(p.Addr)); err != nil || now != p.jump() {
		return err
	}
	return writeWord(memory, p.Addr, p.Code[:jumpSize])
}

// writeWord writes bytes that lie in one machine word, all at once: a thread that
// did not stop in time may be running there.
func writeWord(memory Memory, addr uint64, b []byte) error {
	var word [wordSize]byte
	begin := int64(addr &^ (wordSize - 1))
	if _, err := memory.ReadAt(word[:], begin); err != nil {
		return err
	}
	copy(word[addr%wordSize:], b)
	_, err := memory.WriteAt(word[:], begin)
	return err
}

// Memory is that of a process, by address.
type Memory interface {
	io.ReaderAt
	io.WriterAt
}

// Clean takes all jumps out of the memory of a forked child, those that have
// been removed since it was forked too. It does not matter if they stay: nobody
// is held there.
func (s *Site) Clean(child Memory) {
	for _, p := range s.places {
		_ = p.restore(child)
	}
}

// Withdraw takes the board away from a target in which no thread can be on its
// way to or from a hold, and ends the monitor's use of the site. A Server of it
// must have been closed, all jumps must have been removed.
func (s *Site) Withdraw() error {
	defer s.Forget()
	if s.memory == nil {
		return nil
	}
	for _, a := range s.arenas {
		if err := s.point(a, 0); err != nil {
			return err
		}
	}
	r, err := s.target.Call(unix.SYS_MUNMAP, s.at, boardSize)
	if err == nil && r != 0 {
		err = callError("munmap", r)
	}
	return err
}

// Forget ends the monitor's use of a site; the target keeps its side. A Server of
// it must have been closed.
func (s *Site) Forget() {
	if s.memory != nil {
		s.memory.close()
		s.memory = nil
	}
}
