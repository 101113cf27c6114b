//go:build linux && amd64

package rendezvous

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"unsafe"
)

// For some operations a tracer needs a stopped thread outside its hold. It shuts the
// gate: threads that continue then soon wait at the gate, from where the tracer can send
// them back to their places, or elsewhere. Threads that are kept are extracted from their
// holds.

// Gate makes threads that come to a place wait before their hold (shut), or lets them
// continue.
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

// Stand is the state of a stopped thread as if it were in the program and not in hold.
type Stand struct {
	Regs Registers
	// Mask is the set of signals that the thread had blocked, valid if Blocked: then hold
	// has blocked others. The caller must set Mask first, and Regs immediately
	// afterwards.
	Mask    uint64
	Blocked bool
}

// Rest returns the state with which a stopped thread at the gate can be sent back to its
// place. now are its registers, which must be in the code of hold (see Site.Holding). The
// thread may be moved only if ok is true.
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

// readMask reads the signals that were blocked before hold blocked all.
func (s *Site) readMask(stand *Stand, rbp uint64) bool {
	var local [localSize]byte
	if _, err := s.target.ReadAt(local[:], int64(rbp-localSize)); err != nil {
		return false
	}
	stand.Blocked = local[localCrowded] == signalsBlocked
	stand.Mask = binary.LittleEndian.Uint64(local[localMask:])
	return true
}

// Extract takes a thread out of the hold in which it is kept after its handler. now are
// its registers, which must be in the code of hold. move must set the thread to another
// state at once, so that the monitor's death at any time does no harm. ok is false for a
// thread that is not held there, or not kept yet.
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
			return false, nil // the target itself has changed the address
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

// slotAt finds the slot at an address of the target.
func (v *Server) slotAt(addr uint64) (slot int, ok bool) {
	off := addr - v.at - uint64(unsafe.Offsetof(v.board.slots))
	return int(off / slotSize), off%slotSize == 0 && off/slotSize < Slots
}

func futexWakeAll(word *uint32) { futexWakeSome(word, math.MaxInt32) }
