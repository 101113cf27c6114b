//go:build linux

// Package perf counts events of threads by the kernel's performance counters
// (perf_event_open): events of the processor, where a PMU exists, and events that only the
// kernel knows. Each counter is a file descriptor of this process, so that nothing is left
// when the process ends. Package omis/linux imports it.
//
// All functions may be called from any goroutine; none blocks.
package perf
