//go:build linux && amd64

package linux

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"mirador/omis/linux/ptrace"
	"mirador/omis/program"
)

// The C library keeps the number of each thread in that thread's memory, at some distance from
// the address in the register fs. The distance is not documented, so it is found by a search.

// The search goes from identityBefore bytes before that address to identityBehind bytes behind it.
const (
	identityBefore = 0x400
	identityBehind = 0xc00
)

// glibcIdentity is this distance in all versions of glibc for x86-64.
const glibcIdentity = 0x2d0

var errNoIdentity = errors.New("its threads do not all have their numbers at the same distance from the address in fs")

// identityPlace returns the distance from the address in fs at which every thread of the
// frozen process has its own number, and whether the address itself is in memory there.
func (p *patcher) identityPlace() (distance int32, self bool, err error) {
	var common []int32
	self = true
	first := true
	for _, t := range p.o.tracer.threads {
		if t.kind > unobserved {
			continue
		}
		var regs ptrace.Regs
		if !t.stopped() || ptrace.GetRegs(t.tid, &regs) != nil {
			return 0, false, &program.Refusal{Why: fmt.Sprintf("thread %d cannot be stopped: it waits uninterruptibly in the kernel", t.tid)}
		}
		if regs.Fs_base == 0 && len(p.o.tracer.threads) == 1 {
			return 0, false, &program.Refusal{Why: "the program has not begun, and its thread does not have its number in memory yet; probes that are set later can count there"}
		}
		places, own := p.identitiesAt(regs.Fs_base, uint32(t.tid))
		self = self && own
		if first {
			common, first = places, false
		} else {
			common = slices.DeleteFunc(common, func(place int32) bool { return !slices.Contains(places, place) })
		}
	}
	switch {
	case len(common) == 1:
		return common[0], self, nil
	case len(common) == 0:
		return 0, false, errNoIdentity
	}
	if slices.Contains(common, glibcIdentity) {
		return glibcIdentity, self, nil
	}
	return 0, false, &program.Refusal{Why: "it is not certain where its threads keep their numbers"}
}

// identitiesAt lists the distances from an address at which a number is found.
func (p *patcher) identitiesAt(fs uint64, number uint32) (places []int32, self bool) {
	const word = 4
	memory := make([]byte, identityBefore+identityBehind)
	begin := fs - identityBefore
	for part := begin &^ (pageSize - 1); part < begin+uint64(len(memory)); part += pageSize {
		// Unmapped memory stays zero.
		from, to := max(part, begin)-begin, min(part+pageSize-begin, uint64(len(memory)))
		_, _ = p.o.space.memory.ReadAt(memory[from:to], int64(begin+from))
	}
	for i := 0; i+word <= len(memory); i += word {
		if binary.LittleEndian.Uint32(memory[i:]) == number {
			places = append(places, int32(i-identityBefore))
		}
	}
	return places, fs != 0 && binary.LittleEndian.Uint64(memory[identityBefore:]) == fs
}
