package translate

import (
	"slices"
	"strings"
)

// isHardware reports whether name is a hardware counter under a common name: a preset of PAPI,
// which MIR 8 names, or an event of perf.
func isHardware(name string) bool {
	name = strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	return strings.HasPrefix(name, "PAPI_") || slices.Contains([]string{
		"CYCLES", "CPU_CYCLES", "REF_CYCLES", "BUS_CYCLES", "INSTRUCTIONS", "BRANCHES", "BRANCH_INSTRUCTIONS", "BRANCH_MISSES",
		"CACHE_REFERENCES", "CACHE_MISSES", "L1_DCACHE_LOAD_MISSES", "L1_ICACHE_LOAD_MISSES", "LLC_LOADS", "LLC_LOAD_MISSES", "DTLB_LOAD_MISSES",
	}, name)
}

// unknown explains why there is no such metric.
func unknown(name string) string {
	if isHardware(name) {
		return name + " is a counter of the processor, and the monitor reads none: it takes times by clocks (WC_TIME, CPU_TIME). " +
			"perf stat -p PID reads them, where the processor shows them; whether it does, mirador doctor tells (perf, hardware counters)"
	}
	if slices.Contains(ofMIR(), name) {
		return name + " is a metric of Table 1 of MIR that the monitor does not measure; on a region there are " + namesOf(true) + ", without one " + namesOf(false)
	}
	return "no metric " + name + nearMetrics(name) + "; on a region there are " + namesOf(true) + ", without one " + namesOf(false)
}

// ofMIR returns the metrics of Table 1 of MIR's report that are not in the catalog. Most of
// them concern a Java virtual machine.
func ofMIR() []string {
	return []string{
		"LOADED_CL_TOTAL", "LOADED_CL_CURR", "UNLOADED_CL", "COMP_TIME", "GC_COUNT", "GC_TIME", "HEAP_MEM_USAGE", "NON_HEAP_MEM_USAGE",
		"NON_FINALIZED_OBJECTS", "DAEMON_THREAD_COUNT", "THREAD_WAITED_COUNT", "THREAD_WAITED_TIME",
		"NET_BYTES_SEND", "NET_BLOCKED_SEND", "NET_BYTES_RECV", "NET_BLOCKED_RECV", "NET_INIT", "NET_END",
	}
}
