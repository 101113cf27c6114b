//go:build linux

package tasks

import (
	"encoding/binary"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// A record about a process begins like one about a thread, its first one; instead of the
// name it has the data that the threads share.
const (
	processThreads     = recordName
	processRan         = processThreads + 8
	processUser        = processRan + 8
	processSystem      = processUser + 8
	processShownUser   = processSystem + 8
	processShownSystem = processShownUser + 8
	processSize        = processShownSystem + 8
)

// processMembers are members of struct signal_struct, which the threads of a process
// share.
var processMembers = [...]member{
	{"nr_threads", 4, processThreads},
	{"sum_sched_runtime", 8, processRan},
	{"utime", 8, processUser},
	{"stime", 8, processSystem},
	{"prev_cputime.utime", 8, processShownUser},
	{"prev_cputime.stime", 8, processShownSystem},
}

// processProgram assembles the program that writes one record for each process. Register
// 8 holds the signal_struct.
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

// firstsOnly skips all threads except the first one of each process.
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

// common reads the data that the threads share before the data of the first thread: a
// thread that ends meanwhile still counts as running.
func common(kernel *btf.Spec) (asm.Instructions, error) {
	signal, err := find(kernel, "task_struct", "signal", 8)
	if err != nil {
		return nil, err
	}
	code := asm.Instructions{
		asm.LoadMem(asm.R8, asm.R7, int16(signal), asm.DWord),
		asm.JEq.Imm(asm.R8, 0, "out"),
		asm.Mov.Imm(asm.R1, 0), // The verifier requires that every byte of the record is written.
		asm.StoreMem(asm.RFP, stackRecord+processThreads, asm.R1, asm.DWord),
	}
	rest, err := copies(kernel, asm.R8, "signal_struct", processMembers[:])
	return append(code, rest...), err
}

// Process describes a process by its first thread. Number, start, state and priority belong to
// this thread. The times are the sum of this thread and all ended threads, so they are the times
// of the process if Threads is 1. The name is not set.
type Process struct {
	Task
	Threads int
}

func parseProcess(record []byte) (p Process) {
	long := func(at int) uint64 { return binary.LittleEndian.Uint64(record[at:]) }
	p.Task = parse(record)
	p.Threads = int(binary.LittleEndian.Uint32(record[processThreads:]))
	// These are the times of ended threads.
	p.Ran += long(processRan)
	p.ticked.user += long(processUser)
	p.ticked.system += long(processSystem)
	p.shown = modes{long(processShownUser), long(processShownSystem)}
	return p
}

// ReadProcesses calls see for each process.
func (r *Reader) ReadProcesses(see func(*Process)) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.records(r.processes, 0, processSize, func(record []byte) bool {
		p := parseProcess(record)
		see(&p)
		return true
	})
}
