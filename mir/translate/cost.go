package translate

import (
	"strings"

	"mirador/omis/node"
)

// cost describes what measuring costs the program, and where: the placement and a rough
// figure; "" if it is never measured. explain says what it costs at a certain place on a certain machine.
func (m Metric) cost() string {
	switch {
	case m.Unavailable == "" && m.held():
		return m.costAlone() + "; on a region, trap: 30 µs an execution"
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

// held reports whether the monitor reads the metric on a region while it holds the thread, by a clock of
// the kernel's performance counters.
func (m Metric) held() bool { return strings.HasPrefix(m.task, byMonitor) }

// needs describes what a machine or a program must have so that the metric can be measured; "" if
// every machine and every program has it, or if the metric is never measured.
func (m Metric) needs() string {
	switch {
	case m.Unavailable != "":
		return ""
	case m.Space == PAPI:
		return "a processor that shows the counter (a virtual machine needs a PMU), Linux 5.13, and CAP_PERFMON or kernel.perf_event_paranoid of at most 2"
	case m.meter != "":
		return "Linux 5.13, and CAP_PERFMON or kernel.perf_event_paranoid of at most 1"
	case m.OnScheduling(), m.clock == "waiting":
		return "CAP_BPF, CAP_PERFMON and a kernel that describes its types (BTF)"
	case m.task != "":
		return "on a region: CAP_BPF, CAP_PERFMON and a kernel that describes its types (BTF)"
	case m.clock == "cpu", strings.HasSuffix(m.eventService(), "_call"):
		return "CAP_BPF and CAP_PERFMON; without them it is measured by ptrace, at a hundred times the cost"
	case len(m.funcs) > 0:
		return "one of these functions in a module with symbols; a program that calls functions inside itself by other names does not count"
	case m.info.process&node.ProcHeap != 0:
		return "the allocator of glibc"
	case m.source == fromNode && strings.Contains(m.Name, "PRESSURE"):
		return "a kernel with pressure stall information (CONFIG_PSI)"
	}
	return ""
}

// eventService returns the service of the event that begins what is measured, "" if no event does.
func (m Metric) eventService() string {
	if len(m.begin) == 0 {
		return ""
	}
	return m.begin[0].service
}
