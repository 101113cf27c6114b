package translate

import "mirador/omis/node"

// Blocks of file input and output have 512 bytes (OMIS 8.1.2, ru_inblock of getrusage).
const block = 512

// sampled says why the parts of the CPU time are not measured on a region.
const sampled = "the kernel only samples at its ticks, some hundred times a second, whether a thread is in the program or in the kernel, so that a region would get a part of its time by chance; CPU_TIME, the sum of both, is exact there"

// usageMetrics returns what the kernel counts for each thread and process since its start.
func usageMetrics() []Metric {
	list := []Metric{
		{Name: "DISK_READ_BYTES", Unit: "B", task: "disk-read-bytes", Doc: "Bytes that disks had to read for it.", info: info{process: node.ProcFileInput, thread: node.ThreadFileInput, factor: block}},
		{Name: "DISK_WRITE_BYTES", Unit: "B", task: "disk-write-bytes", Doc: "Bytes that it caused to be written to disks, when they became dirty in the cache.", info: info{process: node.ProcFileOutput, thread: node.ThreadFileOutput, factor: block}},
		{Name: "INVOLUNTARY_SWITCHES", Unit: "1", task: "involuntary-switches", Doc: "How often threads lost their processor to another thread. For processes, that of the live threads.", info: info{process: node.ProcInvolContSwitch, thread: node.ThreadInvolContSwitch}},
		{Name: "MAJOR_FAULTS", Unit: "1", task: "major-faults", Doc: "Page faults that waited for a disk.", info: info{process: node.ProcMajorPageFaults, thread: node.ThreadMajorPageFaults}},
		{Name: "MINOR_FAULTS", Unit: "1", task: "minor-faults", Doc: "Page faults that did not wait for a disk.", info: info{process: node.ProcMinorPageFaults, thread: node.ThreadMinorPageFaults}},
		{Name: "QUEUED_TIME", Unit: "ms", task: "queued", Doc: "Time for which threads were ready and waited for a processor (run-queue delay). For processes, that of the live threads.", info: info{process: node.ProcQueuedTime, thread: node.ThreadQueuedTime}},
		{Name: "READ_BYTES", Unit: "B", task: "read-bytes", Doc: "Results of read and similar system calls, whatever they read from: files, pipes, terminals, sockets.", info: info{process: node.ProcReadBytes, thread: node.ThreadReadBytes}},
		{Name: "SYSTEM_TIME", Unit: "ms", elsewhere: sampled, Doc: "CPU time in the kernel, in steps of 10 ms: on a region there is CPU_TIME, because the kernel only estimates this part of it at its ticks.", info: info{process: node.ProcSystemTime, thread: node.ThreadSystemTime}},
		{Name: "USER_TIME", Unit: "ms", elsewhere: sampled, Doc: "CPU time in the program, in steps of 10 ms, as for SYSTEM_TIME.", info: info{process: node.ProcUserTime, thread: node.ThreadUserTime}},
		{Name: "VOLUNTARY_SWITCHES", Unit: "1", task: "voluntary-switches", Doc: "How often threads gave up their processor to wait. For processes, that of the live threads.", info: info{process: node.ProcVolContSwitch, thread: node.ThreadVolContSwitch}},
		{Name: "WRITE_BYTES", Unit: "B", task: "write-bytes", Doc: "Results of write and similar system calls, whatever they wrote to.", info: info{process: node.ProcWrittenBytes, thread: node.ThreadWrittenBytes}},
	}
	for i := range list {
		m := &list[i]
		m.Kind, m.Entities, m.source = "counter", allEntities, fromInfo
		m.Doc += " Since the start of the process or thread."
		m.Measured = "proc_get_info, thread_get_info: the kernel's numbers in /proc, read without stopping anything"
		if m.task != "" {
			m.Measured += "; on a region, in the kernel, a timer of pa_timer_create2 with the clock " + m.task
		}
	}
	return list
}

// sizeMetrics returns the sizes of the memory of a process.
func sizeMetrics() []Metric {
	list := []Metric{
		{Name: "RESIDENT_MEM", level: "resident", Doc: "Memory of the process that is present in the main memory.", info: info{process: node.ProcResidentSize}},
		{Name: "RESIDENT_MEM_MAX", level: "resident-max", Doc: "The greatest RESIDENT_MEM so far.", info: info{process: node.ProcMaxResidentSize}},
		{Name: "VIRTUAL_MEM", level: "virtual", Doc: "Size of all mappings of the process.", info: info{process: node.ProcMemorySize}},
	}
	for i := range list {
		list[i].Measured = "proc_get_info: read from /proc, without stopping anything"
	}
	return sizes(list)
}

// heapMetrics returns the sizes that Table 1 of MIR's report has.
func heapMetrics() []Metric {
	return sizes([]Metric{
		{
			Name: "HEAP_MEM_USAGE", level: "heap", info: info{process: node.ProcHeap},
			Doc:      "Bytes that the program has allocated and not freed, with the allocator's own headers. With an allocator other than glibc's: resident anonymous memory, which includes stacks and changed data.",
			Measured: "proc_get_info: from the tables of glibc's allocator in the memory of the process, as mallinfo2 computes uordblks + hblkhd, without stopping a thread. Free chunks beyond the first 16,384, and those that threads change meanwhile, count as allocated. With another allocator, and in Go: resident - shared of /proc/PID/statm (RssAnon)",
		},
		{
			Name: "NON_HEAP_MEM_USAGE", level: "non-heap", info: info{process: node.ProcNonHeap},
			Doc:      "Resident memory that is not anonymous: code, data of files, shared memory.",
			Measured: "proc_get_info: shared of /proc/PID/statm (RssFile + RssShmem), without stopping anything",
		},
	})
}

// readAtEnds says how a level is measured on a region.
const readAtEnds = "; on a region, pa_timer_take_level at its beginning and end, while the thread is held"

// sizes completes the rows of levels in bytes.
func sizes(list []Metric) []Metric {
	for i := range list {
		m := &list[i]
		m.Unit, m.Kind, m.Entities, m.source, m.falls = "B", "gauge", ofProcesses, fromInfo, true
		m.Measured += readAtEnds
	}
	return list
}
