// Package probes keeps the applications and their probes: it carries out MIR
// requests on live processes through OMIS requests, one tool for each
// application.
//
// It imports mir, mir/translate, sir, omis and its journal; http and cli import it. What it
// cannot ask the monitor for, the structure of a program and the names of
// addresses, comes by functions in Config, which cli joins.
//
// With a Heritage it writes down, before it answers, what a gateway must know that comes
// after it was killed; Restore is how that one begins.
//
// Everything may be called from any goroutine. An application does one change
// at a time (launching, attaching, instrumenting, controlling, releasing);
// reading values and snapshots waits for no change. A probe that samples or
// delivers has one goroutine while it is active; Release waits for it to end.
package probes
