package translate

import "strings"

// hardwareMetrics returns counters of the processor by the names of PAPI's presets, which MIR 8
// mentions.
func hardwareMetrics() []Metric {
	return metered([]Metric{
		{Name: "PAPI_BR_INS", Doc: "Branch instructions.", meter: "branch-instructions"},
		{Name: "PAPI_BR_MSP", Doc: "Mispredicted branches.", meter: "branch-misses"},
		{Name: "PAPI_L1_ICM", Doc: "Misses of the first-level instruction cache.", meter: "L1-icache-load-misses"},
		{Name: "PAPI_L1_LDM", Doc: "Loads that missed the first-level data cache.", meter: "L1-dcache-load-misses"},
		{Name: "PAPI_L3_LDM", Doc: "Loads that missed the last-level cache.", meter: "LLC-load-misses"},
		{Name: "PAPI_L3_TCA", Doc: "Accesses to the last-level cache.", meter: "cache-references"},
		{Name: "PAPI_L3_TCM", Doc: "Misses of the last-level cache.", meter: "cache-misses"},
		{Name: "PAPI_REF_CYC", Doc: "Reference cycles.", meter: "ref-cycles"},
		{Name: "PAPI_RES_STL", Doc: "Cycles in which the execution waited for a resource.", meter: "stalled-cycles-backend"},
		{Name: "PAPI_STL_ICY", Doc: "Cycles in which no instruction was issued.", meter: "stalled-cycles-frontend"},
		{Name: "PAPI_TLB_DM", Doc: "Loads that missed the translation cache for data.", meter: "dTLB-load-misses"},
		{Name: "PAPI_TLB_IM", Doc: "Misses of the translation cache for instructions.", meter: "iTLB-load-misses"},
		{Name: "PAPI_TOT_CYC", Doc: "Cycles.", meter: "cpu-cycles"},
		{Name: "PAPI_TOT_INS", Doc: "Instructions.", meter: "instructions"},
	}, "In the program, not in the kernel. If more events are measured than the processor has counters, the kernel takes turns and the value is an estimate, of which pa_meter_read shows the part that was counted.")
}

// perfMetrics returns what only the kernel's performance counters count, on any machine.
func perfMetrics() []Metric {
	return metered([]Metric{
		{Name: "ALIGNMENT_FAULTS", Doc: "Faults by accesses to memory that the processor does not allow at this address; x86 allows most.", meter: "alignment-faults"},
		{Name: "CPU_MIGRATIONS", Doc: "How often threads were moved from one processor to another.", meter: "cpu-migrations", task: "migrations"},
		{Name: "EMULATION_FAULTS", Doc: "Instructions that the kernel had to execute in place of the processor.", meter: "emulation-faults"},
		{Name: "PAGE_FAULTS", Doc: "Page faults, minor and major ones.", meter: "page-faults", task: "page-faults"},
	}, "")
}

// byMonitor begins the names of clocks that the monitor reads.
const byMonitor = "perf:"

// isShaken reports whether the monitor changes the metric when it holds a thread to read it.
func (m Metric) isShaken() bool {
	switch m.task {
	case "voluntary-switches", "involuntary-switches", "queued":
		return true
	}
	return false
}

// metered completes the rows of metrics that the kernel's performance counters count.
func metered(list []Metric, more string) []Metric {
	for i := range list {
		m := &list[i]
		m.Unit, m.Kind, m.Entities, m.source = "1", "counter", allEntities, fromMeter
		m.Doc = strings.TrimSpace(m.Doc + " Since the probe was activated or reset. A thread that begins meanwhile is counted with the thread that created it. " + more)
		m.Measured = "pa_meter_start: the event " + m.meter + " of perf_event_open for each thread, as perf stat -p PID -e " + m.meter + " does; on a region, "
		if m.task != "" {
			m.Measured += "in the kernel, a timer of pa_timer_create2 with the clock " + m.task
			continue
		}
		m.task = byMonitor + m.meter
		m.Measured += "a timer of pa_timer_create2 with the clock " + m.task + ", which the monitor reads while it holds the thread, counted from the thread's first execution on. What the thread executes to be held is counted with it"
	}
	return list
}
