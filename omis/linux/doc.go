// Package linux is the monitor/program interface of a Linux machine (OMIS 4):
// it implements node.Node on x86-64, with and without privileges.
//
// Only cli may import it; it imports omis and its own subpackages. Each process
// that is traced has one owner, a goroutine locked to its OS thread, which makes
// every ptrace call for the process, holds all state about its threads and
// breakpoints, and runs the handlers of its watches. Everything else reaches the
// owner through its mailbox. Threads that are held without ptrace (package
// rendezvous) are served on a goroutine of their own, where handlers run too, one
// at a time for a process.
//
// A target outlives its monitor, whatever kills it. What a breakpoint needs to
// be passed stands in the target itself (package resident); a warden process
// puts the program text back (package warden).
package linux
