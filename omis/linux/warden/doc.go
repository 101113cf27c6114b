// Package warden outlives the monitor for a moment: a process of its own that
// knows every breakpoint and jump in every target and, when the monitor is gone, puts
// the program text back, byte for byte, without tracing anybody.
//
// The monitor's side is Client, used by omis/linux; the warden's side is Run,
// which cli calls in the process that Client starts. They speak in datagrams
// over a socket pair whose end is the monitor's death. With a target comes its
// open memory file, so that the warden needs no permission of its own and can
// never mistake one process for another that got its pid.
package warden
