//go:build linux && amd64

package rendezvous

import (
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"
)

// Target is a process in the hands of a tracer. It is asked for things only
// during calls of Install, Adopt and the methods of Site, for which all of its
// threads must be stopped.
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
	memory *memory
	at     uint64 // where the target has the board
	arenas []arena
	places map[uint64]*place // by Plan.Addr; all that ever stood
}

// place is where a jump stands, or stood.
type place struct {
	Plan
	stub   uint64
	moved  []int
	stands bool
}

// Install maps a board into a target, and an arena near an address of its
// program.
func Install(t Target, near uint64, c Config) (*Site, error) {
	s := &Site{target: t, config: c, places: make(map[uint64]*place)}
	a, err := s.newArena(near)
	if err != nil {
		return nil, err
	}
	if err := s.share(a.addr + arenaMagic); err != nil {
		return nil, err
	}
	s.arenas = append(s.arenas, a)
	if err := s.point(a, s.at); err != nil {
		s.memory.close()
		return nil, err
	}
	return s, nil
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
	s.memory, err = openMemory(s.target.PID(), int(fd))
	if err == nil {
		s.at, err = s.mapBoard(uint64(fd))
	}
	// The mapping keeps the memory; the program wants its descriptors to itself.
	if _, e := s.target.Call(unix.SYS_CLOSE, uint64(fd)); err == nil {
		err = e
	}
	if err != nil && s.memory != nil {
		s.memory.close()
	}
	if err == nil {
		s.memory.board.patience = uint32(s.config.Patience / nap)
	}
	return err
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

// Prepare makes the stub for a place. The jump is not there yet: first, threads
// that stand inside the place go on elsewhere (see Moved), so that the monitor
// may die at any time in between.
func (s *Site) Prepare(p Plan) error {
	if old := s.places[p.Addr]; old != nil && old.At == p.At && string(old.code) == string(p.code) {
		return nil
	}
	a, err := s.arenaFor(p.At)
	if err != nil {
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

// Plant puts the jump at a place that was prepared. No thread may stand inside
// it, nor come back there from a signal handler (see Plan.Inside). Hits reach a
// Server; without one, threads go on.
func (s *Site) Plant(addr uint64) error {
	p := s.places[addr]
	if p == nil {
		return &Refusal{addr, "nothing was prepared for it"}
	}
	j := jump(p.At, p.stub+stubEntry)
	_, err := s.target.WriteAt(j[:], int64(p.At))
	p.stands = p.stands || err == nil
	return err
}

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
	if err := s.point(a, s.at); err != nil {
		return nil, err
	}
	s.arenas = append(s.arenas, a)
	return &s.arenas[len(s.arenas)-1], nil
}

// Remove puts the program's own bytes back. The stub stays: threads may be in
// it, and go on from there.
func (s *Site) Remove(addr uint64) error {
	p := s.places[addr]
	if p == nil || !p.stands {
		return nil
	}
	_, err := s.target.WriteAt(p.code[:jumpSize], int64(p.At))
	p.stands = err != nil
	return err
}

// Stands tells whether a jump is at a place.
func (s *Site) Stands(addr uint64) bool {
	p := s.places[addr]
	return p != nil && p.stands
}

// Moved is where a thread has to go on that is stopped inside a place that was
// prepared; ok is false for all others.
func (s *Site) Moved(pc uint64) (to uint64, ok bool) {
	for _, p := range s.places {
		if !p.Inside(pc) {
			continue
		}
		for i, end := range p.ends[:len(p.ends)-1] {
			if pc == p.At+uint64(end) {
				return p.stub + stubCopy + uint64(p.moved[i+1]), true
			}
		}
	}
	return 0, false
}

// Contains tells whether a thread at pc is in our code. Such a thread is under
// way to or from a hold.
func (s *Site) Contains(pc uint64) bool {
	for _, a := range s.arenas {
		if a.contains(pc) {
			return true
		}
	}
	return false
}

// Unpatched puts into code, read at addr, the program's own bytes where jumps
// stand.
func (s *Site) Unpatched(addr uint64, code []byte) {
	for _, p := range s.places {
		if !p.stands {
			continue
		}
		for i, b := range p.code[:jumpSize] {
			if at := p.At + uint64(i) - addr; at < uint64(len(code)) {
				code[at] = b
			}
		}
	}
}

// Forget ends the monitor's use of a site; the target keeps its side. A Server of
// it must have been closed.
func (s *Site) Forget() { s.memory.close() }
