//go:build linux

package perf

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// event is what perf_event_open takes for the name of an event.
type event struct {
	kind   uint32
	config uint64
}

// cacheMisses is the event that loads missed a cache.
func cacheMisses(cache uint64) event {
	return event{unix.PERF_TYPE_HW_CACHE, cache | unix.PERF_COUNT_HW_CACHE_OP_READ<<8 | unix.PERF_COUNT_HW_CACHE_RESULT_MISS<<16}
}

// events has the events by the names that the command perf uses.
var events = map[string]event{
	"branch-instructions":     {unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	"branch-misses":           {unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_BRANCH_MISSES},
	"cache-misses":            {unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CACHE_MISSES},
	"cache-references":        {unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CACHE_REFERENCES},
	"cpu-cycles":              {unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES},
	"instructions":            {unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS},
	"ref-cycles":              {unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_REF_CPU_CYCLES},
	"stalled-cycles-backend":  {unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
	"stalled-cycles-frontend": {unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},

	"L1-dcache-load-misses": cacheMisses(unix.PERF_COUNT_HW_CACHE_L1D),
	"L1-icache-load-misses": cacheMisses(unix.PERF_COUNT_HW_CACHE_L1I),
	"LLC-load-misses":       cacheMisses(unix.PERF_COUNT_HW_CACHE_LL),
	"dTLB-load-misses":      cacheMisses(unix.PERF_COUNT_HW_CACHE_DTLB),
	"iTLB-load-misses":      cacheMisses(unix.PERF_COUNT_HW_CACHE_ITLB),

	"alignment-faults": {unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_ALIGNMENT_FAULTS},
	"cpu-migrations":   {unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_MIGRATIONS},
	"emulation-faults": {unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_EMULATION_FAULTS},
	"page-faults":      {unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS},
}

// names lists the known events.
func names() []string { return slices.Sorted(maps.Keys(events)) }

const inheritThread = 1 << 35 // not by processes that the thread creates; Linux 5.13

// attributes returns what to count. Events of the processor are counted only while the program
// itself runs, as PAPI does: to count them in the kernel, an unprivileged user needs a lower
// perf_event_paranoid. Events of the kernel happen in the kernel only.
func (e event) attributes() unix.PerfEventAttr {
	attr := unix.PerfEventAttr{
		Type: e.kind, Config: e.config, Size: unix.PERF_ATTR_SIZE_VER5, Bits: unix.PerfBitInherit | inheritThread,
		Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
	}
	if e.kind != unix.PERF_TYPE_SOFTWARE {
		attr.Bits |= unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
	}
	return attr
}
