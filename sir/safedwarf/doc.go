// Package safedwarf reads the debug information (DWARF) of files that may have been made to
// harm their reader, and the function tables of Go programs. The readers in debug/dwarf trust a file in several ways: a few bytes of
// it can exhaust the memory or the stack of the process, neither of which Go can recover
// from. Open refuses such files; Reader, Type and Lines replace the readers that recurse or
// allocate without limit. Scan reads many entries fast.
//
// Every package that reads DWARF uses this package, so that one budget limits all debug
// information in memory. It imports nothing of this module. All reading ends soon after its
// context has ended. Data may be used by several goroutines, but for Type; a Reader, a Scan and
// Lines belong to one goroutine.
package safedwarf
