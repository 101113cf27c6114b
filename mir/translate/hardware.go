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
	return "no metric " + name + nearMetrics(name) + "; GET /catalog lists the metrics"
}
