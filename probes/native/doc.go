// Package native is the runtime of programs that were compiled to machine code: it reads their
// structure and their names from ELF and DWARF, and asks the node for what it knows of a
// language, such as goroutines.
//
// It imports the packages that read files and processes, and mir/translate for the types of its
// answers; only cli imports it. Its methods may be called from any goroutine, and read each file
// once.
package native
