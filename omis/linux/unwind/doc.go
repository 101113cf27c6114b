// Package unwind reads the call stacks of stopped threads. It uses the unwind tables of
// .eh_frame, which optimised code without frame pointers has too, those of .debug_frame,
// which Go programs have instead, and the frame pointer if a module has neither.
//
// Only omis/linux and its subpackages may import it. Images is a cache for all processes
// and may be used from any goroutine; a Layout belongs to one caller.
package unwind
