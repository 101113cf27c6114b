//go:build linux && amd64

// Package patch puts code into a process that runs on: a jump over some
// instructions of the program leads to a stub, which has copies of them with the
// code in between, where it was asked for. A thread that comes along runs all of
// it and goes on behind the jump; nobody holds it, and nobody is woken up.
//
// # What stands where
//
//	window  the instructions that a jump displaces (see package detour)
//	place   a window, its points, and the stub they are in
//	point   an address at which code runs; several may be at one address
//	arena   the process's own memory, near the code: stubs, described so that a
//	        monitor that did not make them can take them out, and before them a
//	        byte for each point that says whether it is on
//
// # Why the monitor may die at any instant
//
// A stub is complete, and off, before the jump to it is written, and a jump is
// written by one write into one page, which the kernel carries out wholly or not
// at all. Nobody has to take a jump out: it stays as it is, and the program goes
// on through it. Stubs of places that were taken out stay until it was seen that
// no thread is in them, nor will come back to one from a signal handler.
//
// # Who owns what
//
// A Site may be read from any goroutine. What changes the program, Commit, is
// for the owner of the process while all of its threads are stopped.
package patch
