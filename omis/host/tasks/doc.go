// Package tasks reads about all threads of a process at once: an eBPF program
// that the kernel runs for each of them (a task iterator, Linux 6.1) writes down
// what /proc/PID/task/TID/stat and schedstat would say. To format, read and parse
// those two files takes some 8 µs a thread, and this a fraction of one.
//
// It takes CAP_BPF and CAP_PERFMON, and a kernel that describes its types; whoever
// imports it (package proc) reads the files where that is not given.
package tasks
