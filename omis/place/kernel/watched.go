//go:build linux && amd64

package kernel

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/program"
)

// The kernel's own events happen in all processes. Whose they are is looked up in two
// tables that the monitor shares with the programs: the number of a process leads to
// its record, if it has one. To all others an event costs a few loads more.

// A record, as programs read it.
const (
	recordFrom        = 0 // the process was started from then
	recordTo          = 8 // until before then: nanoseconds since boot
	recordPID         = 16
	recordInterrupted = 24 // threads of which something is in the table of interrupted calls
	recordStarted     = 32 // slots, by the number of the system call
	recordEnded       = recordStarted + 2*callNumbers
	recordRoles       = recordEnded + 2*callNumbers // slots, by roles
	recordSize        = recordRoles + 8
)

// Numbers of system calls: those that the table of names knows are below otherCalls,
// which stands for all others, and for those of 32-bit code, whose numbers mean
// something else.
const (
	otherCalls  = 512
	callNumbers = otherCalls + 4
)

// mostWatched is how many processes have records at a time.
const mostWatched = 512

// indexSize is the number of elements of the table that leads from the lower bits of a
// process number to a record.
const indexSize = 1 << 16

// records are the two tables.
type records struct {
	index, list *ebpf.Map
	indexed     []byte
	listed      []byte
	free        []uint16
	next        uint16
}

func (r *records) open(set maps) (err error) {
	r.next = 1 // 0 says that there is none
	if r.index, err = set.Map(&ebpf.MapSpec{Name: "index", Type: ebpf.Array, KeySize: 4, ValueSize: 2 * indexSize, MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE}); err != nil {
		return err
	}
	if r.list, err = set.Map(&ebpf.MapSpec{Name: "list", Type: ebpf.Array, KeySize: 4, ValueSize: recordSize, MaxEntries: mostWatched, Flags: unix.BPF_F_MMAPABLE}); err != nil {
		return err
	}
	if r.indexed, err = share(r.index, 2*indexSize); err != nil {
		return err
	}
	r.listed, err = share(r.list, recordSize*mostWatched)
	return err
}

func share(m *ebpf.Map, size int) ([]byte, error) {
	b, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("cannot share memory with programs in the kernel: %w", err)
	}
	return b, nil
}

func (r *records) close() {
	for _, b := range [][]byte{r.indexed, r.listed} {
		if b != nil {
			_ = unix.Munmap(b) // it is mapped
		}
	}
}

// record is one process's.
type record struct {
	at   uint16
	data []byte
}

// take makes the record of a process.
func (r *records) take(id omis.ProcID) (record, error) {
	var rec record
	entry := r.indexed[2*(id.PID%indexSize):]
	if taken := binary.LittleEndian.Uint16(entry); taken != 0 {
		other := r.at(taken)
		return rec, &program.Refusal{Why: fmt.Sprintf("process %d, whose number ends alike, is observed in the kernel", binary.LittleEndian.Uint32(other.data[recordPID:]))}
	}
	switch n := len(r.free); {
	case n > 0:
		rec = r.at(r.free[n-1])
		r.free = r.free[:n-1]
	case r.next == mostWatched:
		return rec, &program.Refusal{Why: fmt.Sprintf("the kernel's own events are observed in %d processes already", mostWatched-1)}
	default:
		rec = r.at(r.next)
		r.next++
	}
	clear(rec.data)
	binary.LittleEndian.PutUint64(rec.data[recordFrom:], id.Start*nsPerTick)
	binary.LittleEndian.PutUint64(rec.data[recordTo:], (id.Start+1)*nsPerTick)
	binary.LittleEndian.PutUint32(rec.data[recordPID:], uint32(id.PID))
	storeHalf(entry, rec.at)
	return rec, nil
}

func (r *records) at(i uint16) record {
	return record{i, r.listed[int(i)*recordSize : (int(i)+1)*recordSize]}
}

// interrupted is how many threads have been interrupted in a system call.
func (r record) interrupted() *atomic.Int64 {
	return (*atomic.Int64)(unsafe.Pointer(&r.data[recordInterrupted]))
}

// hide lets no program find a record any more; those that have may still be at it.
func (r *records) hide(id omis.ProcID) { storeHalf(r.indexed[2*(id.PID%indexSize):], 0) }

// give lets others use a record again.
func (r *records) give(rec record) { r.free = append(r.free, rec.at) }

// storeHalf writes a number of 16 bits at one stroke: programs may be reading.
func storeHalf(at []byte, v uint16) { *(*uint16)(unsafe.Pointer(&at[0])) = v }

// Registers of a root program: what the tracepoint told, the record, a number, a task.
const (
	told   = asm.R6
	found  = asm.R7
	number = asm.R8
	whose  = asm.R9
)

// stackIndex is the key of the record on the stack.
const stackIndex = -32

// find puts the address of the record of a task's process into found; it goes to out
// where it has none. In a pid namespace inside the machine's first one only the
// current task's number can be had.
func (r *records) find(l *layout, task asm.Register, out string) asm.Instructions {
	var code asm.Instructions
	if l.nested {
		code = append(l.process(out), asm.Mov.Reg(number, asm.R0))
	} else {
		code = asm.Instructions{asm.LoadMem(number, task, l.tgid, asm.Word)}
	}
	return append(code,
		asm.Mov.Reg(asm.R1, number),
		asm.And.Imm(asm.R1, indexSize-1), asm.LSh.Imm(asm.R1, 1),
		asm.LoadMapValue(asm.R2, r.index.FD(), 0),
		asm.Add.Reg(asm.R2, asm.R1),
		asm.LoadMem(asm.R1, asm.R2, 0, asm.Half),
		asm.JEq.Imm(asm.R1, 0, out),
		asm.StoreMem(asm.RFP, stackIndex, asm.R1, asm.Word),
		asm.LoadMapPtr(asm.R1, r.list.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, stackIndex),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, out),
		asm.Mov.Reg(found, asm.R0),
		asm.LoadMem(asm.R1, found, recordPID, asm.Word),
		asm.JNE.Reg(asm.R1, number, out),
		asm.LoadMem(asm.R1, task, l.leader, asm.DWord),
		asm.LoadMem(asm.R1, asm.R1, l.started, asm.DWord),
		asm.LoadMem(asm.R2, found, recordFrom, asm.DWord),
		asm.JLT.Reg(asm.R1, asm.R2, out),
		asm.LoadMem(asm.R2, found, recordTo, asm.DWord),
		asm.JGE.Reg(asm.R1, asm.R2, out))
}
