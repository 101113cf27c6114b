// Package tasks reads all threads of a process, or all processes, at once: the kernel
// runs an eBPF program for each of them (a task iterator, Linux 6.1), which writes the
// contents of /proc/PID/task/TID/stat and schedstat as a binary record. To format, read
// and parse these two files takes about 8 µs per thread; the program takes a fraction of
// one.
//
// It requires CAP_BPF, CAP_PERFMON and a kernel that describes its types; if they are
// missing, package proc, which imports it, reads the files.
package tasks
