package translate

import (
	"strings"

	"mirador/omis/node"
)

// cost describes what measuring costs the program, and where: the placement and a rough
// figure; "" if it is never measured. explain says what it costs at a certain place on a certain machine.
func (m Metric) cost() string {
	switch {
	case m.Unavailable == "" && m.task != "":
		return m.costAlone() + "; on a region, kernel: 1.6 µs an execution"
	case m.gains():
		return m.costAlone() + "; on a region also, kernel: 1.6 µs an execution, trap: 20 µs"
	}
	return m.costAlone()
}

func (m Metric) costAlone() string {
	switch {
	case m.Unavailable != "":
		return ""
	case m.source == fromCounter:
		return "inline: 0 to 2 ns an execution; kernel: 0.5 µs; trap: 10 µs"
	case m.source == fromTimer:
		return "inline: 20 to 50 ns an execution; kernel: 1.4 µs; trap: 20 µs"
	case m.source == fromCPUTimer:
		return "kernel: 2 µs an execution; trap: 30 µs"
	case len(m.funcs) > 0:
		return "inline: 2 to 50 ns a call; kernel: 0.5 to 1.4 µs; trap: 10 to 20 µs"
	case m.info.process&node.ProcHeap != 0:
		return "nothing in the program; the monitor reads 4 µs for each free chunk of the heap, at most 0.1 s"
	case m.meter != "":
		return "the kernel saves and loads a counter at each switch of a measured thread, about 1 µs; nothing in the program"
	case !m.onEvents():
		return "nothing in the program; the monitor reads some µs for each process or thread and value"
	case strings.HasSuffix(m.begin[0].service, "_call"):
		return "kernel: 0.1 µs at each watched end of such a system call, and 0.1 µs for each other call of any process; trap, without CAP_BPF and CAP_PERFMON: 15 µs for every system call of the process"
	}
	return "kernel: 0.1 µs each time a thread of the process gets or loses its processor"
}
