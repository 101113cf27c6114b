package translate

import (
	"slices"
	"strings"
)

// isHardware tells whether a name is one by which tools ask for a counter of the
// processor: a preset of PAPI, which MIR 8 names, or an event of perf.
func isHardware(name string) bool {
	name = strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	return strings.HasPrefix(name, "PAPI_") || slices.Contains([]string{
		"CYCLES", "CPU_CYCLES", "REF_CYCLES", "BUS_CYCLES", "INSTRUCTIONS", "BRANCHES", "BRANCH_INSTRUCTIONS", "BRANCH_MISSES",
		"CACHE_REFERENCES", "CACHE_MISSES", "L1_DCACHE_LOAD_MISSES", "L1_ICACHE_LOAD_MISSES", "LLC_LOADS", "LLC_LOAD_MISSES", "DTLB_LOAD_MISSES",
	}, name)
}

// unknown says why there is no such metric.
func unknown(name string) string {
	if isHardware(name) {
		return name + " is a counter of the processor, and the monitor reads none: it takes times by clocks (WC_TIME, CPU_TIME). " +
			"perf stat -p PID reads them, where the processor shows them; whether it does, mirador doctor tells (perf, hardware counters)"
	}
	return "no metric " + name + "; on a region there are " + namesOf(true) + ", without one " + namesOf(false)
}
