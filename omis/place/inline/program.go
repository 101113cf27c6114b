//go:build linux && amd64

package inline

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"mirador/omis/node"
	"mirador/omis/program"
)

// text is a digest of what a program does, and for which threads. A program may replace another at the same
// address if their texts are equal.
type text [sha256.Size]byte

// textOf describes a program. Its steps name their cells by entries of the directory.
func textOf(m *compiler, entries []int, named []thread) text {
	var b []byte
	number := func(v uint64) { b = binary.LittleEndian.AppendUint64(b, v) }
	for i, s := range m.steps {
		number(uint64(s.do))
		number(uint64(s.value))
		number(uint64(s.oneIn))
		number(uint64(entries[i]))
		if s.do == program.OpTrace {
			number(uint64(s.mark))
		}
		number(uint64(s.level))
		if s.load.IsLoaded() {
			b = fmt.Appendf(b, "%+v", s.load)
		}
	}
	if m.ordered {
		b = append(b, 1)
	}
	if m.when != node.Always {
		b = append(b, "when"...)
		b = append(b, byte(m.when))
	}
	if m.timing.at != 0 {
		number(uint64(m.timing.kind))
		number(m.timing.at)
	}
	for _, t := range named {
		number(uint64(t.tid))
		number(t.started)
	}
	return sha256.Sum256(b)
}

// said is the description of a program in the shared memory.
type said struct {
	number int
	addr   uint64
	change uint64 // address of the switch of its code
	filter int    // -1: none
	kind   int    // an index of kinds
	text   text
}

// kinds has the kinds of places.
var kinds = [...]string{"inside", "entry", "return"}

func kindAt(spot node.Spot) int {
	switch {
	case spot.Entry:
		return 1
	case spot.Return:
		return 2
	}
	return 0
}

// say writes the description of a program that is about to be installed.
func (m *memory) say(s *said) (err error) {
	if s.number, err = m.program.take(); err != nil {
		return err
	}
	at := programsAt + s.number*programSize
	m.word(at + programAddr).Store(s.addr)
	m.word(at + programSwitch).Store(0)
	m.word32(at + programFilter).Store(uint32(s.filter + 1))
	copy(m.bytes[at+programText:], s.text[:])
	m.word32(at + programState).Store(1)
	if used := m.word(headerSaid); used.Load() <= uint64(s.number) {
		used.Store(uint64(s.number + 1))
	}
	return nil
}

// sayWhere adds what is known only when the code is made.
func (m *memory) sayWhere(s *said) {
	at := programsAt + s.number*programSize
	m.word32(at + programKind).Store(uint32(s.kind))
	m.word(at + programSwitch).Store(s.change)
}

// unsay deletes the description.
func (m *memory) unsay(s *said) {
	m.word32(programsAt + s.number*programSize + programState).Store(0)
	m.program.give(s.number)
}

// allSaid returns the descriptions that a former monitor has left.
func (m *memory) allSaid() (list []said) {
	const perPage = pageSize / programSize
	most, next := m.program.next, 0
	m.dataIn(programsAt, programsAt+most*programSize, func(page int) {
		first := (page - programsAt) / programSize
		next = min(first+perPage, most)
		for number := first; number < next; number++ {
			if s, ok := m.readSaid(number); ok {
				list = append(list, s)
			} else {
				m.program.give(number)
			}
		}
	})
	m.program.next = next
	return list
}

func (m *memory) readSaid(number int) (s said, ok bool) {
	at := programsAt + number*programSize
	if m.word32(at+programState).Load() == 0 {
		return s, false
	}
	s = said{number: number, addr: m.word(at + programAddr).Load(), change: m.word(at + programSwitch).Load()}
	s.filter, s.kind = int(m.word32(at+programFilter).Load())-1, int(m.word32(at+programKind).Load())%len(kinds)
	copy(s.text[:], m.bytes[at+programText:])
	return s, true
}
