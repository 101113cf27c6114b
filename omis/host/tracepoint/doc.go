// Package tracepoint runs eBPF programs at the kernel's raw tracepoints. If that is
// impossible, its errors name what is missing.
//
// Only omis/host, omis/code, omis/linux and omis/place may import it. It starts no
// goroutine; a Set belongs to one caller.
package tracepoint
