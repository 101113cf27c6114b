// Package engine is the on-line monitor proper: tools with their scopes, the
// tables of tokens, the execution of action lists, conditional requests and their
// replies (OMIS 5 to 8). It knows machines by the interface node.Node and the
// capabilities beside it alone; there may be several, the one it runs on first.
//
// # Where a request goes
//
// Tokens are the engine's, and each object knows its node. A service is executed on
// the node its objects live on; left of a semicolon nodes work at the same time
// (spread.go), each in the order of the actions. A locked list locks the nodes it
// touches, in their order (lists.go). What fails on one node fails for its objects.
//
// A conditional request whose actions only count and measure time is a program
// (program.go). Where the node has placements (program.Machine) it runs in the first that
// takes it, in the process or in the kernel (placing.go, plant.go), and what it measures
// is read from there (feed.go); else it is executed by the monitor as any other. So it is
// where a breakpoint or a locked list is in its way (evict.go, locked.go). While it moves,
// its process is suspended (still.go).
//
// The gateway makes an Engine and sends requests through its Tools. The engine
// imports omis, omis/syntax and omis/service; extensions are handed to New.
//
// # Who runs where, and who holds which lock
//
// A request runs on the goroutine that sends it, or, when it has a callback, on
// the tool's own queue. An event is recognised on the goroutine that owns the
// process (dispatch.go); local actions run right there, all others on the
// process's queue while the thread is held. Replies leave through the tool's
// delivery queue. Queues have a goroutine only while there is something in them.
//
// Three locks, taken in this order:
//
//	node.lists    who may execute action lists on a node: shared by ordinary ones, exclusive for locked ones
//	Engine.admin  serialises what changes instrumentation and scopes; held while the node is called
//	registry.mu   the tables; held for moments, never while the node is called
//
// The owner of a process takes registry.mu and the locks of single points and
// queues, and tries node.lists without waiting. So nothing that waits for a
// node can keep the owner waiting.
package engine
