// Package gateway is the HTTP side of Mirador: MIR documents, OMIS requests and
// the state of probes over a Unix socket and over TCP. It stands in the folder
// http and is called gateway, so that net/http keeps its name in every file.
//
// All routes stand in one table (routes.go) with the role that may call them;
// the router, the page and the access checks read that table. A request passes
// one frame (frame.go): identity, role, handler, error, log, metrics. There is
// no other middleware, because POST /mir must not be what a tool waits for.
//
// Only cli imports this package; it joins it with the monitor by the interface
// Backend. The goroutines here are those of net/http: one for each connection.
// A Server may be used from all of them; its tables are made by New and not
// changed afterwards.
package gateway
