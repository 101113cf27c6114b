// Package placing decides where the programs of conditional requests run, and moves them when that changes.
//
// A request whose actions only count and measure time is a program (program.Program). It runs in the first
// placement of its node that takes it, in the process or in the kernel. If no placement takes it, the monitor
// executes the request itself, for each event.
//
// # How a request gets its place
//
// Subscribe makes a Subscription for each process of the request. The request is compiled (candidate.go). Then
// one round for each placement, the cheapest first, asks the placement for its judgement, gives the program its
// stores and places it (plant.go). Requests that begin and end the same intervals form a bond, which gets one
// placement for all of them (bond.go).
//
// # When the place changes
//
//   - A breakpoint of the monitor and a program must not be at one address. If the monitor begins to execute a
//     request, MakeWay evicts the programs that are in its way (evict.go). The same holds for objects that a
//     locked list names (guard.go).
//   - If a request ends that kept others from running where it is cheaper, their placements are chosen again
//     (rechoose.go).
//   - While requests move, their process is suspended (still.go).
//
// # What programs measure
//
// A feed is what the programs of one placement in one process have measured for one object of a tool: the rows of
// a store (feed.go). Objects can be kept: then the next monitor adopts their stores (keep.go). From the rows
// follows what the programs cost (spending.go), and what they add to the durations they measure (bias.go).
//
// # The interface to the engine
//
// The engine owns tools, requests, tokens and threads, executes action lists and plants the monitor's own watches.
// It calls Placing; Placing calls the engine by the interfaces Host, Owner, Tool and ProcessHost. All methods of
// Placing want the engine's lock for instrumentation (Engine.admin) held by their caller, unless their comments
// say otherwise. Timers take this lock themselves. Placing calls the interfaces with the lock held. It calls
// placements (program.Placer) with the lock held, too, and takes no lock of theirs.
//
// Methods of a feed that read rows may be called from any goroutine without the lock.
//
// Only omis/engine imports this package. It imports omis, omis/node, omis/program and omis/service.
package placing
