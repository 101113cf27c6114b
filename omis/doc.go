// Package omis is the vocabulary of the monitor: what a request, a token, a
// reply and a status are (OMIS 2.0, chapter 7), and the two sides of the
// monitor that other packages meet: Tool, which a tool talks to, and Node,
// which the engine talks to.
//
// Every package of the house may import omis; omis imports none of them.
// The values here are plain data. Nothing in this package starts a goroutine;
// the concurrency rules of Tool and Node stand at their definitions.
package omis
