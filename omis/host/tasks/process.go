//go:build linux

package tasks

import (
	"encoding/binary"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// A record about a process begins as one about a thread, its first one; in place of
// the name comes what the threads have in common.
const (
	processThreads     = recordName
	processRan         = processThreads + 8
	processUser        = processRan + 8
	processSystem      = processUser + 8
	processShownUser   = processSystem + 8
	processShownSystem = processShownUser + 8
	processSize        = processShownSystem + 8
)

// processMembers are of struct signal_struct, which is what the threads of a process
// have in common.
var processMembers = [...]member{
	{"nr_threads", 4, processThreads},
	{"sum_sched_runtime", 8, processRan},
	{"utime", 8, processUser},
	{"stime", 8, processSystem},
	{"prev_cputime.utime", 8, processShownUser},
	{"prev_cputime.stime", 8, processShownSystem},
}

// processProgram writes one record for each process. Register 8 holds what its threads
// have in common.
func processProgram(kernel *btf.Spec) (asm.Instructions, error) {
	return assembled(
		begin,
		func() (asm.Instructions, error) { return firstsOnly(kernel) },
		func() (asm.Instructions, error) { return common(kernel) },
		func() (asm.Instructions, error) { return copies(kernel, asm.R7, "task_struct", members[:]) },
		func() (asm.Instructions, error) { return number(kernel) },
		finish(processSize),
	)
}

// firstsOnly passes over all threads but the first ones of their processes.
func firstsOnly(kernel *btf.Spec) (asm.Instructions, error) {
	pid, err := find(kernel, "task_struct", "pid", 4)
	if err != nil {
		return nil, err
	}
	tgid, err := find(kernel, "task_struct", "tgid", 4)
	if err != nil {
		return nil, err
	}
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R7, int16(pid), asm.Word),
		asm.LoadMem(asm.R2, asm.R7, int16(tgid), asm.Word),
		asm.JNE.Reg(asm.R1, asm.R2, "out"),
	}, nil
}

// common reads what the threads of the process have in common, before what is the
// first one's: should another end meanwhile, it is counted as the one that it was.
func common(kernel *btf.Spec) (asm.Instructions, error) {
	signal, err := find(kernel, "task_struct", "signal", 8)
	if err != nil {
		return nil, err
	}
	code := asm.Instructions{
		asm.LoadMem(asm.R8, asm.R7, int16(signal), asm.DWord),
		asm.JEq.Imm(asm.R8, 0, "out"),
		asm.Mov.Imm(asm.R1, 0), // every byte of the record is to be written
		asm.StoreMem(asm.RFP, stackRecord+processThreads, asm.R1, asm.DWord),
	}
	rest, err := copies(kernel, asm.R8, "signal_struct", processMembers[:])
	return append(code, rest...), err
}

// Process is a process, by its first thread: the number, the start, the state and
// the priority are that one's. The times are those of this thread and of all that have
// ended: those of the process, if Threads is 1. The name is not told.
type Process struct {
	Task
	Threads int
}

func parseProcess(record []byte) (p Process) {
	long := func(at int) uint64 { return binary.LittleEndian.Uint64(record[at:]) }
	p.Task = parse(record)
	p.Threads = int(binary.LittleEndian.Uint32(record[processThreads:]))
	// Of threads that have ended.
	p.Ran += long(processRan)
	p.ticked.user += long(processUser)
	p.ticked.system += long(processSystem)
	p.shown = modes{long(processShownUser), long(processShownSystem)}
	return p
}

// ReadProcesses calls see with each process there is.
func (r *Reader) ReadProcesses(see func(*Process)) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.records(r.processes, 0, processSize, func(record []byte) bool {
		p := parseProcess(record)
		see(&p)
		return true
	})
}
