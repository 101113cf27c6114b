// Package unwind reads the call stacks of stopped threads: by the unwind tables
// of .eh_frame, which optimised code without frame pointers has too, by those of
// .debug_frame, which are all that programs in Go have, and by the frame pointer
// where a module has none.
//
// Only omis/linux and its subpackages may import it. Images is a cache for all
// processes and may be used from any goroutine; a Layout belongs to one caller.
package unwind
