// Package deliver carries the measurement documents of a probe to their destinations: files, sockets,
// servers, and the streams that readers of the gateway listen to.
//
// The package imports mir, and probes imports it. Its functions may be called from any goroutine and
// wait for no destination, so that a slow one cannot delay a probe.
package deliver
