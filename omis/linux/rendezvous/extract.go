//go:build linux && amd64

package rendezvous

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"unsafe"
)

// A tracer that wants to do with a thread what takes a stopped one has it come out
// of its hold. With the gate shut, threads that go on are soon at rest before it,
// from where they are sent back to their places, or elsewhere. Those that are kept
// are extracted.

// Gate has threads that come to a place wait before their hold, or go on.
func (v *Server) Gate(shut bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.retired {
		return
	}
	if shut {
		atomic.StoreUint32(&v.board.gate, 1)
		return
	}
	atomic.StoreUint32(&v.board.gate, 0)
	futexWakeAll(&v.board.gate)
}

// Stand is how a stopped thread would stand in the program.
type Stand struct {
	Regs Registers
	// Mask are the signals it had blocked, where Blocked tells that hold has blocked
	// others. They must be set first, Regs then at once.
	Mask    uint64
	Blocked bool
}

// Rest tells how a stopped thread would stand that was sent back to its place,
// given the registers it has, as it is in the code of hold (see Site.Holding).
// It is free to be sent only where ok is true.
func (s *Site) Rest(now *Registers) (stand Stand, ok bool) {
	if now[R8] != atRest {
		return stand, false
	}
	var frame [frameReturn + 8]byte
	if _, err := s.target.ReadAt(frame[:], int64(now[RBP])); err != nil {
		return stand, false
	}
	for i := range RIP {
		stand.Regs[i] = binary.LittleEndian.Uint64(frame[8*i:])
	}
	stand.Regs[RSP] = now[RBP] + frameSize
	stand.Regs[RFlags] = binary.LittleEndian.Uint64(frame[frameFlags:])
	if stand.Regs[RIP], ok = s.PlaceOf(binary.LittleEndian.Uint64(frame[frameReturn:])); !ok {
		return stand, false
	}
	return stand, s.readMask(&stand, now[RBP])
}

// readMask reads what hold keeps of the signals that were blocked before.
func (s *Site) readMask(stand *Stand, rbp uint64) bool {
	var local [localSize]byte
	if _, err := s.target.ReadAt(local[:], int64(rbp-localSize)); err != nil {
		return false
	}
	stand.Blocked = local[localCrowded] == signalsBlocked
	stand.Mask = binary.LittleEndian.Uint64(local[localMask:])
	return true
}

// Extract takes a thread out of the hold it waits in, beyond whose handler it is
// kept, given the registers it has, as it is in the code of hold. move has it stand
// otherwise, at once: then it cannot matter if the monitor dies. ok is false for a
// thread that is not held there, or not yet kept.
func (v *Server) Extract(s *Site, tid int, now *Registers, move func(*Hit, Stand) error) (ok bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i, ok := v.slotAt(now[R15])
	if !ok || v.kept[i] == 0 {
		return false, nil
	}
	slot := &v.board.slots[i]
	if int(atomic.LoadUint32(&slot.tid)) != tid || !v.hits[i].Held() {
		return false, nil
	}
	stand := Stand{Regs: slot.regs}
	if stand.Regs[RIP] == v.hits[i].Addr {
		p := s.places[v.hits[i].Addr]
		if p == nil {
			return false, nil // the target has written the address itself
		}
		stand.Regs[RIP] = p.copyAt(0)
	}
	if !s.readMask(&stand, now[RBP]) {
		return false, nil
	}
	if err := move(&v.hits[i], stand); err != nil {
		return false, err
	}
	v.kept[i] = 0
	atomic.StoreUint32(&slot.word, 0)
	atomic.StoreUint32(&slot.tid, 0)
	return true, nil
}

// slotAt finds the slot that the target has at an address.
func (v *Server) slotAt(addr uint64) (slot int, ok bool) {
	off := addr - v.at - uint64(unsafe.Offsetof(v.board.slots))
	return int(off / slotSize), off%slotSize == 0 && off/slotSize < Slots
}

func futexWakeAll(word *uint32) { futexWakeSome(word, math.MaxInt32) }
