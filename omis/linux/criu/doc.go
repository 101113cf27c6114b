// Package criu runs CRIU, the program that saves and restores processes on Linux, and
// turns the first error in its log into an error message. It keeps no state apart from
// Finder; its functions may be called from any goroutine.
//
// A run of CRIU must not end with the monitor: CRIU changes the memory of a process, and
// must finish its work. So CRIU has a session of its own, and writes to a file, because a
// pipe would break.
package criu
