// Package engine is the on-line monitor proper: tools with their scopes, the
// tables of tokens, the execution of action lists, conditional requests and their
// replies (OMIS 5 to 8). It knows the machine by the interface omis.Node alone.
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
//	Engine.lists  who may execute action lists: shared by ordinary ones, exclusive for locked ones
//	Engine.admin  serialises what changes instrumentation and scopes; held while the node is called
//	registry.mu   the tables; held for moments, never while the node is called
//
// The owner of a process takes registry.mu and the locks of single points and
// queues, and tries Engine.lists without waiting. So nothing that waits for a
// node can keep the owner waiting.
package engine

//go:generate go test . -run TestReferencePageIsCurrent -update
