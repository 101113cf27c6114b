//go:build linux && amd64

// Package possible finds in which placements the regions of programs can be measured, as far as their files tell.
//
// It asks what a placement asks about the places of a probe: whether there is room for a jump, and whether an
// instruction may have a uprobe or a breakpoint. What depends on the process, on the rights of the monitor, on the
// kernel, or on other probes, is not in a file: the gateway explains it for a request (Prefer: explain).
//
// Only cli imports it. A Finder may be used from any goroutine.
package possible
