// Package pa is the extension for performance analysis (OMIS 5.3.1, 6): counters,
// timers and integrators that actions update while a program runs, an event that
// comes at regular intervals, the filter of OMIS 8.2.2, and the combinations of
// events that OMIS 5.6 leaves to extensions.
//
// A counter, a timer or an integrator has a row for each thread that updated it; rows of threads
// that have ended stay. What updates them is local: it runs where the event is
// recognised, on the goroutine that owns the process, and takes the object's own
// lock for a few instructions. Reading takes the same lock, so a row is always
// consistent.
//
// Only cli imports this package, to hand the extension to the engine. It imports
// omis and the extension interface in omis/service.
package pa
