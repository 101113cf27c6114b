// Package probes keeps the applications and their probes: it carries out MIR
// requests on live processes through OMIS requests, one tool for each
// application.
//
// It imports mir, mir/translate, sir, omis and its journal; http and cli import it. Config names
// what it needs of others: the monitor, the structure of programs, and a journal.
//
// With a journal it records, before it answers, what the next gateway must know if this
// one is killed; Restore is how that one begins.
//
// Everything may be called from any goroutine. An application does one change
// at a time (launching, attaching, instrumenting, controlling, releasing);
// reading values and snapshots waits for no change. A probe that samples or
// delivers has one goroutine while it is active; Release waits for it to end.
package probes
