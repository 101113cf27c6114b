// Package omis is the vocabulary of the monitor: requests, tokens, replies and statuses
// (OMIS 2.0, chapter 7), and Tool, the interface of the monitor that tools call.
//
// Every package of this module may import omis; omis imports none of them. The values
// here are plain data. Nothing in this package starts a goroutine.
package omis
