//go:build linux && amd64

// Package patch puts code into a running process: a jump over some instructions of the program
// leads to a stub, which contains copies of these instructions with the code in between. A thread
// that reaches the jump executes the stub and continues after the jump. The thread is not held, and
// the monitor is not woken up.
//
// # Parts
//
//	window  the instructions that a jump displaces (see package detour)
//	place   a window, its points, and the stub they are in
//	point   an address at which code runs; several may be at one address
//	arena   the process's own memory, near the code: stubs, described so that a
//	        later monitor can remove them, and before them a switch for each
//	        point, a byte that turns it on
//
// # Why the monitor may die at any time
//
// A stub is complete, and off, before the jump to it is written, and the jump is written by one
// write into one page, which the kernel executes completely or not at all. A jump need not be
// removed: the program continues through it. Stubs of removed places stay until no thread is in
// them and no signal handler will return to them.
//
// # Ownership
//
// The tables of a Site may be read from any goroutine. Only the owner of the process may call
// Commit, which changes the program, while all threads of the process are stopped.
package patch
