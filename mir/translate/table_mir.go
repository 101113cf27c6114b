package translate

import (
	"slices"

	"mirador/mir"
	"mirador/omis/node"
)

var (
	allEntities = []mir.EntityKind{mir.Node, mir.Process, mir.Thread}
	ofProcesses = allEntities[:2]
)

// mirMetrics returns the metrics of Table 1 of MIR's report that native programs have, and
// COUNT, which the text of MIR 8 names.
func mirMetrics() []Metric {
	return append(slices.Concat(netMetrics(), heapMetrics()),
		Metric{
			Name: "BLOCKED_COUNT", Unit: "1", Kind: "counter", Entities: allEntities, source: fromEvents,
			Doc:      "How often threads began to wait for a lock since the probe was activated or reset. Locks that are free are taken without the kernel and do not count." + ofLocks,
			Measured: "pa_counter_add when the system call futex begins to wait for a lock",
			begin:    systemCalls(started, waitForLock),
		},
		Metric{
			Name: "BLOCKED_TIME", Unit: "ms", Kind: "counter", Entities: allEntities, source: betweenEvents,
			Doc:      "Total time that threads waited for locks. A wait counts when it ends." + ofLocks,
			Measured: "pa_timer_start when the system call futex begins to wait for a lock, pa_timer_stop when it ends",
			begin:    systemCalls(started, waitForLock), end: systemCalls(ended, "futex"),
		},
		Metric{
			Name: "COUNT", Unit: "1", Kind: "counter", Entities: allEntities, source: fromCounter,
			Doc:      "How often the region was executed since the probe was activated or reset.",
			Measured: "pa_counter_add at the region's entry",
		},
		Metric{
			Name: "CPU_TIME", Unit: "ms", Kind: "gauge", Entities: allEntities, source: fromInfo,
			info:     info{process: node.ProcTotalTime, thread: node.ThreadTotalTime},
			Doc:      "CPU time used since the start, user and system.",
			Measured: "proc_get_info, thread_get_info: read from /proc, without stopping anything",
		},
		Metric{
			Name: "CPU_TIME", Unit: "ms", Kind: "timer", Entities: allEntities, source: fromCPUTimer,
			Doc:      "CPU time of the thread from entering the region to leaving it, user and system, for the last execution, as for WC_TIME.",
			Measured: "pa_timer_start and pa_timer_stop as for WC_TIME, with a timer of the clock cpu: in the kernel, or while the thread is held",
		},
		Metric{
			Name: "THREAD_COUNT", Unit: "1", Kind: "gauge", Entities: ofProcesses, falls: true, level: "threads", source: fromThreads,
			Doc:      "The current number of live threads.",
			Measured: "thread_get_info: read from /proc, without stopping anything" + readAtEnds,
		},
		Metric{
			Name: "THREAD_WAITED_COUNT", Unit: "1", Kind: "counter", Entities: allEntities, source: fromEvents, funcs: conditionWaits,
			Doc:      "How often threads began to wait for notification: calls of pthread_cond_wait, pthread_cond_timedwait and pthread_cond_clockwait, which std::condition_variable makes, too.",
			Measured: "pa_counter_add at the beginnings of these functions in all modules of the process",
		},
		Metric{
			Name: "THREAD_WAITED_TIME", Unit: "ms", Kind: "counter", Entities: allEntities, source: betweenEvents, funcs: conditionWaits,
			Doc:      "Total time that threads waited for notification, until they have the mutex again. A wait counts when it ends.",
			Measured: "pa_timer_start at the beginnings of the functions of THREAD_WAITED_COUNT, pa_timer_stop at their ends",
		},
		Metric{
			Name: "WC_TIME", Unit: "ms", Kind: "timer", Entities: allEntities, source: fromTimer,
			Doc:      "Wall clock time from entering the region to leaving it, for the last execution. For processes and nodes, it is that of the thread that entered the region last.",
			Measured: "pa_timer_start at the region's entry, pa_timer_stop at each of its exits",
		},
	)
}

// waitForLock selects the calls of futex that wait for a lock: for a critical section (MIR 8) that
// another thread executes.
const (
	waitForLock = "futex@lock"
	ofLocks     = " Locks are mutexes of Posix threads, C++, Rust and Go, and others that wait while their word is 2; linux:WAIT_COUNT and linux:WAIT_TIME measure waiting for anything."
)

// conditionWaits are the functions of Posix threads that wait for a notification.
var conditionWaits = []string{"pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait"}
