// Package engine is the monitor proper: tools with their scopes, the tables of tokens, the execution of action lists,
// and conditional requests with their replies (OMIS 5 to 8). It knows machines by the interface node.Node and its
// capabilities only. It can serve several machines; the first one is the machine that it runs on.
//
// # Where a request goes
//
// The engine makes all tokens, and each object knows its node. A service is executed on the nodes of its objects. Up
// to a semicolon, nodes work concurrently (spread.go), each in the order of the actions. A locked list locks the nodes
// that it touches, in a fixed order (lists.go). If a node fails, the service fails for the node's objects.
//
// A conditional request whose actions only count and measure time is compiled to a program (program.go). Package
// placing decides where the program runs: in the process, in the kernel, or not at all. In the last case the monitor
// executes the action list for each event, as for all other conditional requests (dispatch.go). hosted.go has the
// engine's side of package placing.
//
// The gateway makes an Engine and sends requests through its Tools. The engine imports omis, omis/syntax, omis/node,
// omis/program, omis/service and omis/engine/placing; extensions are passed to New.
//
// # Goroutines and locks
//
// A request runs on the goroutine that sends it or, if it has a callback, on the tool's own queue. An event is
// recognised on the goroutine that owns the process (dispatch.go). Local actions run on that goroutine; all others run
// on the queue of the process while the thread is held. Replies leave through the tool's delivery queue. A queue has a
// goroutine only while it has elements.
//
// Three locks are taken in this order:
//
//	node.lists    for executing action lists on a node: shared by ordinary lists, exclusive for locked ones
//	Engine.admin  for changes of instrumentation and scopes; held while the node is called
//	registry.mu   for the tables; held for moments, never while the node is called
//
// Package placing is called with Engine.admin held, and calls back with it held; its timers take the lock themselves.
//
// The owner of a process takes registry.mu and the locks of single points and queues, and tries node.lists without
// waiting. So an operation that waits for a node never blocks an owner.
package engine
