// Package warden is a process that outlives the monitor for a moment: it knows every
// breakpoint and jump in every target and, after the monitor's death, restores the bytes
// of the programs without tracing them.
//
// Client is the monitor's side, used by omis/linux; Run is the warden's side, which cli
// calls in the process that Client starts. They exchange datagrams over a socket pair;
// the monitor's death closes its end. The message about a target carries the target's
// open memory file, so that the warden needs no privilege of its own and cannot confuse
// the target with another process that reuses its pid.
package warden
