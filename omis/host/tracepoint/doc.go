// Package tracepoint runs eBPF programs at the kernel's raw tracepoints, and
// where that is not to be had it says what is missing.
//
// Only omis/host, omis/code, omis/linux and omis/place may import it. It starts no goroutine; a
// Set belongs to one caller.
package tracepoint
