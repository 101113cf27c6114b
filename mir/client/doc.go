// Package client lets Go programs measure other programs through a running gateway ("mirador
// serve"). The commands of mirador are built on it.
//
// New finds the gateway: by an address, by MIRADOR_GATEWAY, or at the default socket. On a Unix
// socket it sends nothing before it knows that root or this user listens; over TCP it uses the
// gateway's token and TLS.
//
// What is observed is an application: some processes under a name. Attach takes in running
// processes, Launch starts a program. Structure lists the units (functions) of its programs, and
// Catalog the metrics.
//
// Instrument sends a request of package mir and returns a Probe, with Value, Activate, Deactivate,
// Reset and Remove. Values carry their names: the metric, the statistic, the process and thread.
// Times are in milliseconds. Probe.Stream has the documents of a probe that delivers its values by
// itself; the stream continues after a lost connection, and says how many documents were missed.
//
// A probe lives in the gateway, not in the program that asked for it. Set a Lease, so that a
// program that dies leaves nothing behind; every use of the probe renews it.
//
// A request that the gateway refuses is an *Error, whose kind errors.Is finds: ErrNotFound,
// ErrForbidden and others. *Unreachable means that there is no gateway, *Untrusted that
// another user serves the socket.
//
// All methods of Client and Probe may be called from any goroutine. The package starts none.
package client
