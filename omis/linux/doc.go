// Package linux is the monitor/program interface of a Linux machine (OMIS 4): it implements
// node.Node on x86-64, with and without privileges.
//
// Only omis/monitor, omis/monitor/rig and commands import it. Each process that is traced has
// one owner, a goroutine locked to its OS thread, which makes every ptrace call for the
// process, owns all state of its threads and breakpoints, and runs the handlers of its
// watches. The parts of that state have types of their own, such as tracer, space and ending.
// All other goroutines reach an owner through its mailbox. Threads that are held without
// ptrace (package rendezvous) are served on a goroutine of their own, where handlers run too,
// one at a time for a process.
//
// A target outlives its monitor, however the monitor dies. The target itself contains what its
// threads need to pass a breakpoint (package resident); a warden process restores the program
// text (package warden).
package linux
