// Package service contains the table of services: it declares every service of OMIS 2.0 once,
// with its parameters, its result and the support by this monitor. The request checker, the
// dispatcher, the service "services", access roles and doc/omis-services.md all read that
// table.
//
// The package also defines extensions (OMIS 6): packages with a table of their own, its
// implementations, and classes of objects.
//
// The engine, the extensions and the gateway import it; it imports package omis. Functions
// create the tables, which are immutable and may be read by several goroutines.
package service
