//go:build linux && amd64

package linux

import (
	"bytes"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/code/x86/relocate"
	"mirador/omis/host/proc"
	"mirador/omis/linux/resident"
	"mirador/omis/node"
)

var _ node.MemoryWriter = (*Node)(nil)

// WriteMemory: see node.MemoryWriter. It also writes memory that the program may not write,
// which gives the process a private copy of the page.
func (n *Node) WriteMemory(p omis.ProcID, addr uint64, data []byte) error {
	return n.owners.ask(p, writeMemory{addr, data})
}

type writeMemory struct {
	addr uint64
	data []byte
}

func (c writeMemory) do(o *owner) error { return o.space.writeMemory(c.addr, c.data) }

func (s *space) writeMemory(addr uint64, data []byte) error {
	if err := s.o.over(); err != nil || len(data) == 0 {
		return err
	}
	memory := s.memory
	if memory == nil {
		var err error
		if memory, err = openMemory(s.o.proc.PID); err != nil {
			return s.o.tracer.refused(err)
		}
		defer memory.Close()
	}
	old := make([]byte, len(data))
	if n, err := memory.ReadAt(old, int64(addr)); n < len(old) {
		if errors.Is(err, unix.EIO) {
			return omis.Errorf(omis.ParameterError, "process %d has no memory at %#x", s.o.proc.PID, addr+uint64(n))
		}
		return s.memoryError(addr+uint64(n), err)
	}
	if s.o.patcher.isPatched(addr, addr+uint64(len(data))) {
		return omis.Errorf(omis.UnsupportedService, "cannot write to %#x of process %d: the code of a probe is there", addr, s.o.proc.PID)
	}
	if err := s.o.meeting.giveWay(addr, uint64(len(data))); err != nil {
		return err
	}
	image := bytes.Clone(data)
	changed, err := s.rewrite(addr, image)
	if err == nil {
		err = s.overwrite(memory, addr, image, old)
	}
	if err != nil {
		s.restoreCopies(changed)
	}
	return err
}

// overwrite writes all of image, or restores what was there.
func (s *space) overwrite(memory *os.File, addr uint64, image, old []byte) error {
	n, err := memory.WriteAt(image, int64(addr))
	if n == len(image) {
		return nil
	}
	_, _ = memory.WriteAt(old[:n], int64(addr))
	return s.memoryError(addr+uint64(n), err)
}

// rewrite prepares the breakpoints in a range that is about to be written. It puts their INT3s
// into image, and renews the copies of those whose instruction changes. It returns these
// breakpoints as they were.
func (s *space) rewrite(addr uint64, image []byte) (former []*breakpoint, err error) {
	var maps proc.Mappings
	data := bytes.Clone(image)
	for _, b := range s.breakpoints {
		if b.addr >= addr+uint64(len(image)) || b.addr+uint64(b.length) <= addr {
			continue
		}
		code := make([]byte, relocate.MaxLen)
		n, err := s.memory.ReadAt(code, int64(b.addr))
		if n == 0 {
			return former, s.memoryError(b.addr, err)
		}
		code = s.unpatched(b.addr, code[:n])
		overlay(code, b.addr, data, addr)
		if b.addr >= addr {
			image[b.addr-addr] = int3
		}
		if b.code != nil && bytes.HasPrefix(code, b.code) {
			continue
		}
		if maps == nil {
			if maps, err = proc.Maps(s.o.proc.PID); err != nil {
				return former, err
			}
		}
		was := *b
		if err := s.recopy(maps, b, code); err != nil {
			return former, err
		}
		former = append(former, &was)
	}
	return former, nil
}

// overlay copies into dst, which begins at the address to, those bytes of src, which begins at
// from, that are in both ranges.
func overlay(dst []byte, to uint64, src []byte, from uint64) {
	if from >= to {
		if from-to < uint64(len(dst)) {
			copy(dst[from-to:], src)
		}
		return
	}
	if to-from < uint64(len(src)) {
		copy(dst, src[to-from:])
	}
}

// recopy gives a breakpoint a copy of another instruction. The former copy stays, since a
// thread may be there.
func (s *space) recopy(maps proc.Mappings, b *breakpoint, code []byte) error {
	slot, err := s.slot(maps, b.addr)
	if err != nil {
		return err
	}
	c, err := relocate.Instruction(code, b.addr, slot.next)
	if err != nil {
		return omis.Errorf(omis.UnsupportedService, "cannot write below the breakpoint at %#x: %w", b.addr, err)
	}
	if err := s.write(slot.next, c.Code); err != nil {
		return err
	}
	now := *b
	now.copy, now.length, now.original, now.code = slot.next, c.Length, code[0], code[:c.Length]
	if err := s.revise(b, &now); err != nil {
		return err
	}
	slot.next += resident.SlotSize
	return nil
}

// revise records a changed instruction of a breakpoint.
func (s *space) revise(b, now *breakpoint) error {
	if err := s.tellWarden(now); err != nil {
		return err
	}
	if err := s.write(s.home.Entry(b.entry), now.residentEntry().Encode()); err != nil {
		return err
	}
	b.copy, b.length, b.original, b.code = now.copy, now.length, now.original, now.code
	s.o.veil.put(b.addr, b.original)
	return nil
}

// restoreCopies undoes rewrite.
func (s *space) restoreCopies(former []*breakpoint) {
	for _, was := range former {
		if b := s.breakpoints[was.addr]; b != nil {
			_ = s.revise(b, was) // what cannot be written any more has ended
		}
	}
}
