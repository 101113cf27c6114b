package translate

import "slices"

// linuxMetrics returns the metrics that only Linux defines.
func linuxMetrics() []Metric {
	return append(slices.Concat(usageMetrics(), sizeMetrics(), fileMetrics(), nodeMetrics(), perfMetrics()),
		Metric{
			Name: "ALLOC_BYTES", Unit: "B", Kind: "counter", Entities: allEntities, source: fromEvents, amount: true,
			funcs: []string{"malloc", "calloc", "realloc", "aligned_alloc", "memalign", "posix_memalign"}, params: []string{"par1", "product", "par2", "par2", "par2", "par3"},
			Doc:      "How many bytes the program asked the allocator for, with new sizes for realloc. new of C++ calls malloc. HEAP_MEM_USAGE has all bytes that are still live.",
			Measured: "pa_counter_add_amount of the size, at the beginnings of malloc, calloc, realloc, aligned_alloc, memalign and posix_memalign in all modules of the process",
		},
		Metric{
			Name: "ALLOC_COUNT", Unit: "1", Kind: "counter", Entities: allEntities, source: fromEvents,
			funcs:    []string{"malloc", "calloc", "aligned_alloc", "memalign", "posix_memalign"},
			Doc:      "How often the program allocated memory, without realloc, from glibc's allocator or from one that replaces it. Less FREE_COUNT these are the allocations that are still live, if the program neither frees NULL nor uses realloc to allocate or free.",
			Measured: "pa_counter_add at the beginnings of malloc, calloc, aligned_alloc, memalign and posix_memalign in all modules of the process",
		},
		Metric{
			Name: "FREE_COUNT", Unit: "1", Kind: "counter", Entities: allEntities, source: fromEvents, funcs: []string{"free"},
			Doc:      "How often the program freed memory, free(NULL) included.",
			Measured: "pa_counter_add at the beginning of free in all modules of the process",
		},
		Metric{
			Name: "IOWAIT_COUNT", Unit: "1", Kind: "counter", Entities: allEntities, source: fromEvents,
			Doc:      "How often threads began to wait for a disk, since the probe was activated or reset.",
			Measured: "pa_counter_add when pa_thread_has_blocked_on_io",
			begin:    []event{{service: "pa_thread_has_blocked_on_io"}},
		},
		Metric{
			Name: "IOWAIT_TIME", Unit: "ms", Kind: "counter", Entities: allEntities, source: betweenEvents,
			Doc:      "Total time that threads waited for a disk, in a system call or for a page that had to be read. A wait counts when it ends.",
			Measured: "pa_timer_start when pa_thread_has_blocked_on_io, pa_timer_stop when thread_has_been_unblocked",
			begin:    []event{{service: "pa_thread_has_blocked_on_io"}}, end: []event{{service: "thread_has_been_unblocked"}},
		},
		Metric{
			Name: "REALLOC_COUNT", Unit: "1", Kind: "counter", Entities: allEntities, source: fromEvents, funcs: []string{"realloc"},
			Doc:      "How often the program changed the size of allocated memory.",
			Measured: "pa_counter_add at the beginning of realloc in all modules of the process",
		},
		Metric{
			Name: "SYSCALL_COUNT", Unit: "1", Kind: "counter", Entities: allEntities, source: fromEvents, byCall: true,
			Doc:      "How many system calls were made since the probe was activated or reset. SYSCALL_COUNT:read counts only read; any system call's name is possible, and as in SYSCALL_COUNT:%network one of the classes %desc, %file, %ipc, %memory, %network, %process, %signal, %time.",
			Measured: "pa_counter_add when thread_has_started_sys_call",
			begin:    systemCalls(started, ""),
		},
		Metric{
			Name: "SYSCALL_TIME", Unit: "ms", Kind: "counter", Entities: allEntities, source: betweenEvents, byCall: true,
			Doc:      "Total time of the system calls that have ended. SYSCALL_TIME:futex measures only futex; names and classes as for SYSCALL_COUNT.",
			Measured: "pa_timer_start when thread_has_started_sys_call, pa_timer_stop when thread_has_ended_sys_call",
			begin:    systemCalls(started, ""), end: systemCalls(ended, ""),
		},
		Metric{
			Name: "WAIT_COUNT", Unit: "1", Kind: "counter", Entities: allEntities, source: fromEvents,
			Doc:      "How often threads began to wait (for input, a lock, a time or each other) since the probe was activated or reset.",
			Measured: "pa_counter_add when thread_has_blocked",
			begin:    []event{{service: "thread_has_blocked"}},
		},
		Metric{
			Name: "WAIT_TIME", Unit: "ms", Kind: "counter", Entities: allEntities, source: betweenEvents,
			Doc:      "Total time that threads waited for anything. A wait counts when it ends.",
			Measured: "pa_timer_start when thread_has_blocked, pa_timer_stop when thread_has_been_unblocked",
			begin:    []event{{service: "thread_has_blocked"}}, end: []event{{service: "thread_has_been_unblocked"}},
		},
	)
}
