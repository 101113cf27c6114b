package omis

// ProcID identifies a process of a node uniquely: the kernel reuses pids, but not a pid
// with the same start time.
type ProcID struct {
	PID   int
	Start uint64 // field 22 of /proc/PID/stat, in clock ticks since boot
}
