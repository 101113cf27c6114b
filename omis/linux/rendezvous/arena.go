//go:build linux && amd64

package rendezvous

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"mirador/omis/code/x86/detour"
)

// arena is a mapping in the target that contains hold and stubs.
type arena struct {
	addr uint64
	used int // number of stubs
}

// reach is the greatest distance of an arena from the code it serves. It leaves a margin
// for that code's data, which must be within the ±2 GB of a relative address.
const reach = 0x60000000

func (a arena) near(addr uint64) bool { return a.addr-addr < reach || addr-a.addr < reach }

func (a arena) stub(i int) uint64 { return a.addr + arenaStubs + uint64(i)*stubSize }

// contains reports whether pc is in code of the arena.
func (a arena) contains(pc uint64) bool { return pc >= a.addr+arenaCode && pc < a.addr+ArenaSize }

// newArena maps an arena near an address. The target cannot write to it; the monitor
// writes to it like a tracer.
func (s *Site) newArena(near uint64) (arena, error) {
	for _, addr := range s.config.Vacancies(near) {
		a := arena{addr: addr}
		if !a.near(near) {
			continue
		}
		r, err := s.target.Call(unix.SYS_MMAP, addr, ArenaSize, unix.PROT_READ|unix.PROT_EXEC,
			unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, ^uint64(0), 0)
		switch {
		case err != nil:
			return a, err
		case r == int64(addr):
			return a, s.fillArena(a)
		case unix.Errno(-r) != unix.EEXIST:
			return a, callError("mmap", r)
		}
	}
	return arena{}, &Refusal{near, "there is no free memory within reach of it"}
}

// fillArena writes the parts of an arena that all stubs need.
func (s *Site) fillArena(a arena) error {
	r, err := s.target.Call(unix.SYS_MPROTECT, a.addr, arenaCode, unix.PROT_READ)
	if err == nil && r != 0 {
		err = callError("mprotect", r)
	}
	if err == nil {
		err = s.wipe(a)
	}
	if err != nil {
		return err
	}
	image := make([]byte, arenaStubs-arenaCode)
	copy(image, holdCode())
	copy(image[arenaMagic-arenaCode:], magic[:])
	_, err = s.target.WriteAt(image, int64(a.addr+arenaCode))
	return err
}

// wipe makes the kernel clear the address of the board in forked children. A process that
// was saved and restored has lost this setting.
func (s *Site) wipe(a arena) error {
	r, err := s.target.Call(unix.SYS_MADVISE, a.addr, arenaCode, unix.MADV_WIPEONFORK)
	if err == nil && r != 0 {
		err = callError("madvise", r)
	}
	return err
}

// point makes the stubs of an arena use a board. The kernel writes its address at once,
// because it is a machine word.
func (s *Site) point(a arena, board uint64) error {
	_, err := s.target.WriteAt(binary.LittleEndian.AppendUint64(nil, board), int64(a.addr))
	return err
}

// encodeStub returns the code of a place's stub at addr.
func encodeStub(p *Plan, addr, hold uint64) (code []byte, moved []int, err error) {
	copied, moved, err := p.Copy(addr + stubCopy)
	if err != nil {
		return nil, nil, p.refuse("%v", err)
	}
	if len(copied) > stubSize-stubCopy {
		return nil, nil, p.refuse("its copy is too long")
	}
	b := binary.LittleEndian.AppendUint64(nil, p.Addr)
	b = append(b, p.Code[:jumpSize]...)
	b = append(b, byte(len(p.Code)), 0, 0)
	b = append(b, 0x48, 0x8d, 0x64, 0x24, 0x100-redZone) // lea -128(%rsp), %rsp
	call := detour.Jump(addr+uint64(len(b)), hold)
	call[0] = 0xe8
	b = append(b, call[:]...)
	return append(b, copied...), moved, nil
}
