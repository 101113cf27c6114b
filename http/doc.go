// Package gateway is the HTTP side of Mirador: it serves MIR documents, OMIS requests and the
// state of probes over a Unix socket and over TCP. Its directory is called http; the package
// is not, so that net/http keeps its name in every file.
//
// One table (routes.go) lists all routes with the role that each requires. The router, the
// page and the access checks read this table. Each request passes through one function
// (frame.go), which does identity, role, handler, error, log and metrics. There is no other
// middleware: it would delay POST /mir.
//
// Only cli imports this package, and connects it with the monitor by the interface Backend.
// net/http starts one goroutine for each connection. They all use the same Server, whose
// tables do not change after New.
package gateway
