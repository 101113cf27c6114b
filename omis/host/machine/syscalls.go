//go:build linux

package machine

import (
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/tracepoint"
)

// Linux does not count system calls, so a program at a raw tracepoint does. It costs each
// call some 70 ns, so it runs only while callers ask for the rates, and only if the
// kernel permits it.
const (
	allCalls = iota
	execCalls
	readCalls
	writeCalls
	callCounters
)

// kindsOfCalls lists the calls with counters of their own.
var kindsOfCalls = [callCounters][]int32{
	execCalls:  {unix.SYS_EXECVE, unix.SYS_EXECVEAT},
	readCalls:  {unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_READV, unix.SYS_PREADV, unix.SYS_PREADV2},
	writeCalls: {unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_WRITEV, unix.SYS_PWRITEV, unix.SYS_PWRITEV2},
}

// callCounter counts the system calls of the machine by their 64-bit numbers; 32-bit
// programs use others.
type callCounter struct {
	set    *tracepoint.Set
	counts *ebpf.Map // an element of callCounters numbers for each processor
}

func openCallCounter() (source, error) {
	c := callCounter{set: tracepoint.NewSet("count system calls")}
	var err error
	c.counts, err = c.set.Map(&ebpf.MapSpec{Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 8 * callCounters, MaxEntries: 1})
	if err == nil {
		err = c.set.Attach("sys_enter", countCalls(c.counts))
	}
	if err != nil {
		c.set.Close()
		return nil, err
	}
	return c, nil
}

// countCalls assembles the program, which gets the number of the call as its second
// argument.
func countCalls(counts *ebpf.Map) asm.Instructions {
	code := asm.Instructions{
		asm.LoadMem(asm.R6, asm.R1, 8, asm.DWord),
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, counts.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
	}
	code = append(code, increment(allCalls)...)
	for kind, numbers := range kindsOfCalls {
		for _, nr := range numbers {
			code = append(code, asm.JEq.Imm(asm.R6, nr, label(kind)))
		}
	}
	code = append(code, asm.Ja.Label("out"))
	for kind, numbers := range kindsOfCalls {
		if len(numbers) == 0 {
			continue
		}
		counting := increment(kind)
		counting[0] = counting[0].WithSymbol(label(kind))
		code = append(append(code, counting...), asm.Ja.Label("out"))
	}
	return append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol("out"), asm.Return())
}

func label(kind int) string { return "kind" + strconv.Itoa(kind) }

// increment adds one to a counter of the element that R0 points to. The element belongs
// to one processor, and nothing interrupts the program to run it again.
func increment(kind int) asm.Instructions {
	at := int16(8 * kind)
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R0, at, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R0, at, asm.R1, asm.DWord),
	}
}

func (c callCounter) Close() error { return c.set.Close() }

func (c callCounter) read() ([]uint64, error) {
	var perCPU [][callCounters]uint64
	if err := c.counts.Lookup(uint32(0), &perCPU); err != nil {
		return nil, err
	}
	sums := make([]uint64, callCounters)
	for _, counts := range perCPU {
		for kind, n := range counts {
			sums[kind] += n
		}
	}
	return sums, nil
}

// callRates returns none for each rate if system calls cannot be counted.
func (m *Machine) callRates() (values [callCounters]omis.Value) {
	rates, err := m.calls.rates()
	for i := range values {
		if values[i] = none; err == nil {
			values[i] = rate(rates[i])
		}
	}
	return values
}
