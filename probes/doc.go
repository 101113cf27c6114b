// Package probes holds the applications and their probes. It executes MIR requests on live
// processes through OMIS requests, with one tool for each application.
//
// It imports mir, mir/translate, sir, omis, and the packages below it that deliver measurements and
// keep its journal; http and cli import it. Config has what it needs of others: the monitor, the
// runtime of programs, and a journal.
//
// With a journal it records, before it answers, what the next gateway must know if this one is
// killed; the next one begins with Restore.
//
// Everything may be called from any goroutine. An application does one change at a time
// (launching, attaching, instrumenting, controlling, releasing); reading values and snapshots
// does not wait for changes. A probe that samples or delivers has one goroutine while it is
// active; Release waits for it to end.
package probes
