// Package registrar sets and removes uprobes in a process of its own. If SIGKILL is pending for the process
// that does this, the kernel stops in the middle and leaves uprobes for ever ("failed to unregister,
// leaking uprobe"). A monitor may be killed, so another process does it.
//
// The monitor's side is Client, which omis/place/kernel uses. The other side is Run, which cli calls in the
// process that Client starts. They exchange datagrams over a socket pair. The monitor has the descriptors
// of all links, so links do not end if a registrar is killed. If the monitor is killed, the kernel removes
// the uprobes when it closes the descriptors of the dead process; the signal does not disturb that. The
// registrar makes each link and passes it to the monitor. To remove uprobes, the monitor passes the link
// back, and the registrar is the last to close it. When the monitor has ended, the registrar completes its
// work and ends.
//
// A Client may be used from any goroutine. In the registrar, one goroutine reads requests, and one
// goroutine for each request executes it.
package registrar
