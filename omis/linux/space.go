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

// space is what we have put into a process's memory. What table and arenas say
// is true as long as the process runs its program: nothing there is ever freed,
// since a thread may be in it for as long as it likes.
type space struct {
	memory      *os.File
	home        resident.Home // 0: nothing there yet
	arenas      []arena
	table       map[uint64]*breakpoint // all that ever stood
	entries     int                    // used in the resident table
	breakpoints map[uint64]*breakpoint // those that stand
	armed       bool                   // the resident handler is installed
	leftover    bool                   // an earlier monitor may have installed it
	old         resident.Sigaction     // what was installed before

	// opened are the signals of whose handlers' masks SIGTRAP was taken, see mask.go;
	// caught those whose handlers were looked at, all of them the last time at looked.
	opened, caught uint64
	looked         int64
	harmless       map[uint64]bool // masks met at hits; see judge
}

type arena struct {
	addr       uint64
	next, last uint64 // free slots
}

// breakpoint is a place where an INT3 stands, or stood.
type breakpoint struct {
	addr, copy uint64
	length     int // of the displaced instruction
	original   byte
	code       []byte // the displaced instruction; nil: an earlier monitor's
	entry      int    // in the resident table
	standing   bool   // says the resident table
	watches    []*watch
	lost       bool             // another tool has taken the INT3 out, once or more
	runtime    *landing.Runtime // of Go, where the code is of that
}

func (b *breakpoint) residentEntry() resident.Entry {
	return resident.Entry{Addr: b.addr, Copy: b.copy, Original: b.original, Length: uint64(b.length), Standing: b.standing}
}

// restore takes an INT3 out, if it is there.
func restore(memory *os.File, b *breakpoint) {
	var now [1]byte
	if _, err := memory.ReadAt(now[:], int64(b.addr)); err == nil && now[0] == int3 {
		_, _ = memory.WriteAt([]byte{b.original}, int64(b.addr))
	}
}

// plant makes a breakpoint stand at addr.
func (o *owner) plant(addr uint64) (*breakpoint, error) {
	if b := o.space.breakpoints[addr]; b != nil {
		if o.stands(b) {
			return b, nil
		}
		o.forgetBreakpoint(b)
	}
	if err := o.settleIn(); err != nil {
		return nil, err
	}
	if err := o.giveWay(addr, 1); err != nil {
		return nil, err
	}
	if b := o.space.breakpoints[addr]; b != nil {
		return b, nil // the jump there has become one
	}
	if o.isPatched(addr, addr+1) {
		return nil, omis.Errorf(omis.UnsupportedService, "no breakpoint can stand at %#x: code that was put into the program stands there", addr)
	}
	b, err := o.ready(addr)
	if err != nil {
		return nil, err
	}
	return b, o.stand(b)
}

// ready prepares a breakpoint at addr.
func (o *owner) ready(addr uint64) (*breakpoint, error) {
	maps, err := proc.Maps(o.proc.PID)
	if err != nil {
		return nil, err
	}
	if m, ok := maps.At(addr); !ok || !m.Exec || !m.Private {
		return nil, omis.Errorf(omis.ParameterError, "process %d has no code at %#x", o.proc.PID, addr)
	}
	if err := o.arm(maps, addr); err != nil {
		return nil, err
	}
	return o.makeReady(maps, addr)
}

// stand writes the INT3 of a breakpoint that is ready.
func (o *owner) stand(b *breakpoint) error {
	if err := o.tellWarden(b); err != nil {
		return omis.Errorf(omis.OSError, "%v", err)
	}
	if err := o.enroll(b, true); err != nil {
		return err
	}
	if err := o.write(b.addr, []byte{int3}); err != nil {
		return err
	}
	o.space.breakpoints[b.addr] = b
	return nil
}

// tellWarden tells the warden of a breakpoint that is about to stand.
func (o *owner) tellWarden(b *breakpoint) error {
	return o.node.warden.Plant(o.proc.PID, b.addr, warden.Patch{
		Standing: []byte{int3}, Displaced: []byte{b.original}, Mark: o.space.home.Mark(b.entry),
	})
}

// enroll says in the resident table whether a breakpoint stands, to whoever comes after
// us: before its INT3 is written, and after it was taken out.
func (o *owner) enroll(b *breakpoint, standing bool) error {
	b.standing = standing
	return o.write(o.space.home.Entry(b.entry), b.residentEntry().Encode())
}

// settleIn opens the memory and puts the process under the warden's guard.
func (o *owner) settleIn() error {
	if o.space.memory != nil {
		return nil
	}
	memory, err := openMemory(o.proc.PID)
	if err != nil {
		return o.refused(err)
	}
	if err := o.node.warden.Hold(o.proc.PID, memory); err != nil {
		memory.Close()
		return omis.Errorf(omis.OSError, "%v", err)
	}
	o.space = &space{memory: memory, table: make(map[uint64]*breakpoint), breakpoints: make(map[uint64]*breakpoint)}
	return o.findSite()
}

// makeReady finds or makes the copy and the table entry for a breakpoint.
func (o *owner) makeReady(maps proc.Mappings, addr uint64) (*breakpoint, error) {
	code := make([]byte, relocate.MaxLen)
	n, err := o.space.memory.ReadAt(code, int64(addr))
	if n == 0 {
		return nil, o.memoryError(addr, err)
	}
	code = o.unpatched(addr, code[:n])
	if b := o.space.table[addr]; b != nil && b.code != nil && bytes.HasPrefix(code, b.code) {
		return b, nil
	}
	if o.hasOther(maps, addr, code) {
		return nil, omis.Errorf(omis.UnsupportedService, "no breakpoint can stand at %#x: another tool's uprobe or breakpoint stands there", addr)
	}
	slot, err := o.slot(maps, addr)
	if err != nil {
		return nil, err
	}
	c, err := relocate.Instruction(code, addr, slot.next)
	if err != nil {
		return nil, omis.Errorf(omis.UnsupportedService, "%v", err)
	}
	m, _ := maps.At(addr)
	runtime, err := o.node.codes.Runtime(o.proc.PID, m, addr)
	if err != nil {
		runtime = nil // the code is of no file: Go has none of that kind
	}
	b := &breakpoint{runtime: runtime, addr: addr, copy: slot.next, length: c.Length, original: code[0], code: code[:c.Length], entry: o.space.entries}
	if former := o.space.table[addr]; former != nil {
		b.entry = former.entry // other code has been loaded there meanwhile
	}
	if err := o.enter(b, c.Code); err != nil {
		return nil, err
	}
	slot.next += resident.SlotSize
	return b, nil
}

// enter writes the copy, the entry, and then the count that makes the entry
// valid.
func (o *owner) enter(b *breakpoint, copied []byte) error {
	if b.entry >= resident.MaxEntries {
		return omis.Errorf(omis.NoMemory, "process %d has had %d breakpoints, there is no room for more", o.proc.PID, b.entry)
	}
	if err := o.write(b.copy, copied); err != nil {
		return err
	}
	if err := o.write(o.space.home.Entry(b.entry), b.residentEntry().Encode()); err != nil {
		return err
	}
	if b.entry == o.space.entries {
		if err := o.write(o.space.home.Count(), word(uint64(b.entry+1))); err != nil {
			return err
		}
		o.space.entries++
	}
	o.space.table[b.addr] = b
	o.veil.put(b.addr, b.original)
	return nil
}

// unpatched is code with the original bytes where breakpoints, jumps and patches of
// ours stand.
func (o *owner) unpatched(addr uint64, code []byte) []byte {
	if o.meeting.site != nil {
		o.meeting.site.Unpatched(addr, code)
	}
	if g := o.node.groundOf(o.proc); g != nil {
		g.site.Hide(addr, code)
	}
	for i := range code {
		if b := o.space.breakpoints[addr+uint64(i)]; b != nil {
			code[i] = b.original
		}
	}
	return code
}

// uproot takes the INT3 of a breakpoint away. Its copy and its table entry stay:
// a thread may just have run into it.
func (o *owner) uproot(b *breakpoint) error {
	if !o.stands(b) {
		o.forgetBreakpoint(b)
		return nil
	}
	if err := o.write(b.addr, []byte{b.original}); err != nil {
		return err
	}
	delete(o.space.breakpoints, b.addr)
	if err := o.enroll(b, false); err != nil {
		return err
	}
	if err := o.node.warden.Clear(o.proc.PID, b.addr); err != nil {
		return omis.Errorf(omis.OSError, "%v", err)
	}
	return nil
}

// stands tells whether the INT3 is still there: the program may have unmapped
// the code, and mapped other code in its place.
func (o *owner) stands(b *breakpoint) bool {
	var now [1]byte
	_, err := o.space.memory.ReadAt(now[:], int64(b.addr))
	return err == nil && now[0] == int3
}

// forgetBreakpoint takes one off the books whose code has gone.
func (o *owner) forgetBreakpoint(b *breakpoint) {
	delete(o.space.breakpoints, b.addr)
	b.watches = nil
	// A warden that cannot be told finds no INT3 there.
	_ = o.node.warden.Clear(o.proc.PID, b.addr)
	_ = o.enroll(b, false) // what cannot be written has ended
}

// vacate forgets a memory that has ceased to be, by execve or the process's end.
func (o *owner) vacate() {
	for _, b := range o.space.breakpoints {
		for _, w := range b.watches {
			delete(o.watches, w)
		}
	}
	o.meeting.end()
	o.node.forgetGround(o.proc)
	if o.space.memory != nil {
		// A warden that cannot be told finds that memory gone by itself.
		_ = o.node.warden.Drop(o.proc.PID)
		o.space.memory.Close()
	}
	o.space = &space{}
	o.veil.clear()
	o.forgetLibraryCalls()
	o.repair = false
}

func (o *owner) write(addr uint64, b []byte) error {
	if _, err := o.space.memory.WriteAt(b, int64(addr)); err != nil {
		return o.memoryError(addr, err)
	}
	return nil
}

func (o *owner) memoryError(addr uint64, err error) error {
	// A memory without users reads and writes as an empty file.
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ended(o.proc.PID)
	}
	return omis.Errorf(omis.OSError, "cannot access address %#x of process %d: %v", addr, o.proc.PID, unwrapPath(err))
}

// unwrapPath leaves out the file name, which says nothing to a user.
func unwrapPath(err error) error {
	if e, ok := err.(*os.PathError); ok {
		return e.Err
	}
	return err
}
