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

// Target is a process under the control of a tracer. Only Adopt and the methods of Site
// call its methods, and all threads of the process must be stopped meanwhile.
type Target interface {
	io.ReaderAt // the memory, by address
	io.WriterAt
	PID() int
	// Call lets one of the threads make a system call, and returns its result, -errno if
	// it failed. The error is for calls that could not be made at all.
	Call(number uint64, args ...uint64) (int64, error)
}

// Config configures a site.
type Config struct {
	// Vacancies proposes page-aligned addresses with ArenaSize free bytes near an address
	// of the program, the best first.
	Vacancies func(near uint64) []uint64

	// Patience is how long a thread waits for a monitor that does not run, for example
	// because it is stopped. It is rounded to tenths of a second; 0 means forever.
	Patience time.Duration

	// Mark is added to the numbers of the system calls that threads make in hold (calls.Mark).
	Mark uint64
}

// Site is the rendezvous in one target.
type Site struct {
	target Target
	config Config
	memory *memory // nil while there is no board
	at     uint64  // address of the board in the target
	arenas []arena
	places map[uint64]*place   // by address; includes places whose jumps were removed
	former map[uint64][]uint64 // stubs of an earlier monitor, by the address of their places
}

// place is an address that has or had a jump.
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
	// The mapping keeps the memory, and the program must not see the descriptor.
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
	s.memory.board.mark = s.config.Mark
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
	return fmt.Errorf("the kernel refuses the process %s: %w", name, unix.Errno(-r))
}

// Prepare makes the stub of a place, and the parts that all places need, unless they
// exist. It does not write the jump: first the caller moves threads that are inside the
// place (see Moved), so that the monitor may die at any time.
func (s *Site) Prepare(p Plan) error {
	old := s.places[p.Addr]
	if old != nil && string(old.Code) == string(p.Code) || s.reuse(&p) {
		return s.connect(s.arenas[0])
	}
	a, err := s.arenaFor(p.Addr)
	if err != nil {
		return err
	}
	if err := s.connect(*a); err != nil {
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

// connect creates the board if there is none, and connects all arenas to it.
func (s *Site) connect(a arena) error {
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

// reuse finds a stub of an earlier monitor that equals the one needed.
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

// Plant writes the jump at a place that was prepared. No thread may be inside the place,
// or return there from a signal handler (see Plan.Inside). Hits go to a Server; without
// one, threads continue.
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

// arenaFor finds an arena near an address with a free stub, or makes one.
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

// Remove restores the program's own bytes, unless the jump was overwritten or the code was
// unmapped. The stub stays, because threads may be in it.
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
		return nil
	}
	return writeWord(memory, p.Addr, p.Code[:jumpSize])
}

// writeWord writes bytes within one machine word at once, because a thread that did not
// stop in time may execute them.
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

// Memory is the memory of a process, by address.
type Memory interface {
	io.ReaderAt
	io.WriterAt
}

// Clean removes all jumps from the memory of a forked child, including those removed from
// the parent since the fork. It ignores errors, because the child is not held anyway.
func (s *Site) Clean(child Memory) {
	for _, p := range s.places {
		_ = p.restore(child)
	}
}

// Withdraw unmaps the board in a target in which no thread can be in a hold or on its way
// into one, and ends the monitor's use of the site. Its Server must be closed, and all
// jumps removed.
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

// Forget ends the monitor's use of a site and changes nothing in the target. Its Server
// must be closed.
func (s *Site) Forget() {
	if s.memory != nil {
		s.memory.close()
		s.memory = nil
	}
}
