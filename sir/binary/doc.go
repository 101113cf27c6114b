// Package binary reads the structure of a compiled program: the functions of an ELF file as
// units, the addresses at which each function is left, and the function and source line at an
// address of a running process.
//
// The command line and the packages that connect the parts of a monitor may import it; it
// imports only sir. Files are untrusted: the package checks every size in a file before it
// allocates memory, and returns a *FormatError for an invalid file.
//
// Only WithInside starts goroutines, which end before it returns. Image, Cache and Symbols may be used by several goroutines
// at once.
package binary
