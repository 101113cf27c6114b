package translate

import (
	"slices"
	"strings"
)

// hardwareMetrics returns counters of the processor by the names of PAPI's presets, which MIR 8
// mentions. The monitor does not read them; the reason says what does.
func hardwareMetrics() []Metric {
	list := []Metric{
		{Name: "PAPI_BR_INS", Doc: "Branch instructions.", Measured: "perf stat -p PID -e branch-instructions"},
		{Name: "PAPI_BR_MSP", Doc: "Mispredicted branches.", Measured: "perf stat -p PID -e branch-misses"},
		{Name: "PAPI_L3_TCA", Doc: "Accesses to the last-level cache.", Measured: "perf stat -p PID -e cache-references"},
		{Name: "PAPI_L3_TCM", Doc: "Misses of the last-level cache.", Measured: "perf stat -p PID -e cache-misses"},
		{Name: "PAPI_REF_CYC", Doc: "Reference cycles.", Measured: "perf stat -p PID -e ref-cycles"},
		{Name: "PAPI_TOT_CYC", Doc: "Cycles.", Measured: "perf stat -p PID -e cpu-cycles"},
		{Name: "PAPI_TOT_INS", Doc: "Instructions.", Measured: "perf stat -p PID -e instructions"},
	}
	for i := range list {
		m := &list[i]
		m.Unit, m.Kind, m.Entities = "1", "counter", allEntities
		m.Unavailable = "the monitor reads no counters of the processor; " + m.Measured + " does, where the processor shows them"
	}
	return list
}

// isHardware reports whether name is a counter of the processor under a common name: a preset of
// PAPI or an event of perf.
func isHardware(name string) bool {
	name = strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	return strings.HasPrefix(name, "PAPI_") || slices.Contains([]string{
		"CYCLES", "CPU_CYCLES", "REF_CYCLES", "BUS_CYCLES", "INSTRUCTIONS", "BRANCHES", "BRANCH_INSTRUCTIONS", "BRANCH_MISSES",
		"CACHE_REFERENCES", "CACHE_MISSES", "L1_DCACHE_LOAD_MISSES", "L1_ICACHE_LOAD_MISSES", "LLC_LOADS", "LLC_LOAD_MISSES", "DTLB_LOAD_MISSES",
	}, name)
}

// unknown explains why there is no such metric.
func unknown(name string) string {
	if _, base := splitSpace(name); isHardware(base) {
		return name + " is a counter of the processor, and the monitor reads none: it takes times by clocks (WC_TIME, CPU_TIME). " +
			"perf stat -p PID reads them, where the processor shows them; whether it does, mirador doctor tells (perf, hardware counters)"
	}
	return "no metric " + name + nearMetrics(name) + "; GET /catalog lists the metrics"
}
