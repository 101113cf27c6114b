// Package pa is the extension for performance analysis (OMIS 5.3.1, 6): counters, timers,
// integrators and traces that actions update while a program runs, an event at regular
// intervals, the filter of OMIS 8.2.2, and the combinations of events that OMIS 5.6
// leaves to extensions.
//
// A counter, a timer or an integrator has a row for each thread that updated it; rows of
// ended threads remain. The updating actions are local: they run where the event is
// recognised, on the goroutine that owns the process, and hold the object's lock for a
// few instructions. Reading takes the same lock, so each row is consistent.
//
// A meter has what the machine counts in threads, for as long as it is started.
//
// Only omis/monitor imports this package, to pass the extension to the engine.
package pa
