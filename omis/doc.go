// Package omis is the vocabulary of the monitor: requests, tokens, replies and statuses
// (OMIS 2.0, chapter 7), and the two interfaces of the monitor: Tool, which tools call,
// and Node, which the engine calls.
//
// Every package of this module may import omis; omis imports none of them. The values
// here are plain data. Nothing in this package starts a goroutine; Tool and Node state
// their concurrency rules.
package omis
