// Package registrar sets uprobes and takes them out, in a process of its own. With
// SIGKILL on its way to the process that does so, the kernel gives up in the middle and
// leaves uprobes standing for ever ("failed to unregister, leaking uprobe"); so the one
// that does so is not the one that may be killed: a monitor.
//
// The monitor's side is Client, used by omis/place/kernel; the other side is Run, which
// cli calls in the process that Client starts. They speak in datagrams over a socket
// pair. The monitor has the descriptors of all links, so that nothing ends with a
// registrar that is killed, and the kernel takes out what stands when the monitor is:
// that is done when the process has died, and is not disturbed. But a link is made by the
// registrar, and handed over; and to be taken out it is handed to the registrar, which
// lets go of it last. When the monitor is gone, the registrar completes what it is about
// and ends.
//
// A Client may be used from any goroutine. In the registrar, one goroutine takes requests
// and one for each of them does it.
package registrar
