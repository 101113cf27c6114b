//go:build linux && amd64

package kernel

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/place/kernel/code"
	"mirador/omis/program"
)

// records has the two tables by which programs at tracepoints find out whether the process is observed,
// and which program of the process they continue with. The monitor maps and writes the tables.
type records struct {
	code.Records
	indexed []byte
	listed  []byte
	free    []uint16
	next    uint16 // records from here on were never used
}

// mostWatched is the most processes that can have records at a time.
const mostWatched = 512

func (r *records) open(set maps) (err error) {
	r.next = 1 // 0 in the index means that there is no record
	if r.Index, err = set.Map(&ebpf.MapSpec{Name: "index", Type: ebpf.Array, KeySize: 4, ValueSize: 2 * code.IndexSize, MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE}); err != nil {
		return err
	}
	if r.List, err = set.Map(&ebpf.MapSpec{Name: "list", Type: ebpf.Array, KeySize: 4, ValueSize: code.RecordSize, MaxEntries: mostWatched, Flags: unix.BPF_F_MMAPABLE}); err != nil {
		return err
	}
	if r.indexed, err = mapShared(r.Index, 2*code.IndexSize); err != nil {
		return err
	}
	r.listed, err = mapShared(r.List, code.RecordSize*mostWatched)
	return err
}

func (r *records) close() {
	for _, b := range [][]byte{r.indexed, r.listed} {
		if b != nil {
			_ = unix.Munmap(b) // it is mapped
		}
	}
}

// record is the record of one process.
type record struct {
	at   uint16
	data []byte
}

// take makes the record of a process.
func (r *records) take(id omis.ProcID) (record, error) {
	var rec record
	entry := r.indexed[2*(id.PID%code.IndexSize):]
	if taken := binary.LittleEndian.Uint16(entry); taken != 0 {
		other := r.at(taken)
		return rec, &program.Refusal{Why: fmt.Sprintf("process %d, whose number ends alike, is observed in the kernel", binary.LittleEndian.Uint32(other.data[code.RecordPID:]))}
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
	binary.LittleEndian.PutUint64(rec.data[code.RecordFrom:], id.Start*code.NsPerTick)
	binary.LittleEndian.PutUint64(rec.data[code.RecordTo:], (id.Start+1)*code.NsPerTick)
	binary.LittleEndian.PutUint32(rec.data[code.RecordPID:], uint32(id.PID))
	storeHalf(entry, rec.at)
	return rec, nil
}

// reopen returns the record that another monitor has taken under a number. The caller passes numbers in
// ascending order; reopen frees the numbers between them.
func (r *records) reopen(n uint16) record {
	for ; r.next < n; r.next++ {
		r.free = append(r.free, r.next)
	}
	r.next = n + 1
	return r.at(n)
}

func (r *records) at(i uint16) record {
	return record{i, r.listed[int(i)*code.RecordSize : (int(i)+1)*code.RecordSize]}
}

// interrupted is the number of threads that have been interrupted in a system call.
func (r record) interrupted() *atomic.Int64 {
	return (*atomic.Int64)(unsafe.Pointer(&r.data[code.RecordInterrupted]))
}

// setSlot says which program runs at an event. at is the offset of the event in the record.
func (r record) setSlot(at int, s slot) { storeHalf(r.data[at:], uint16(s)) }

// slots adds the slots that a record has at n consecutive offsets.
func (r record) slots(at, n int, into map[slot]bool) {
	for i := range n {
		if s := slot(binary.LittleEndian.Uint16(r.data[at+2*i:])); s != 0 {
			into[s] = true
		}
	}
}

// hide removes a record from the index. Programs that have found the record may still use it.
func (r *records) hide(id omis.ProcID) { storeHalf(r.indexed[2*(id.PID%code.IndexSize):], 0) }

// give frees a record.
func (r *records) give(rec record) { r.free = append(r.free, rec.at) }

// storeHalf writes 16 bits in one memory access, because programs may be reading them.
func storeHalf(at []byte, v uint16) { *(*uint16)(unsafe.Pointer(&at[0])) = v }
