// Package binary reads the structure of a compiled program: the functions of an
// ELF file as units, the addresses at which each is left, and what stands at an
// address of a running process.
//
// It may be imported by the command line and by whatever joins the parts of the
// house; it imports sir and nothing else of ours. Files come from strangers, so
// every size a file claims is checked before memory is taken for it, and a file
// that makes no sense is a *FormatError.
//
// The package starts no goroutines. Image, Cache and Symbols may be used by
// several goroutines at once.
package binary
