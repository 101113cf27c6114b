// Package criu runs CRIU, the program that saves and restores processes on
// Linux, and says in a sentence what it makes pages of. It keeps no state; its
// functions may be called from any goroutine.
//
// A run survives the monitor: CRIU is in the middle of somebody's memory, and
// has to come to its end whatever becomes of who started it. So it has a session
// of its own, and writes to a file, for a pipe would break.
package criu
