// Package node defines what a machine offers the engine (OMIS 4): the interface Node, the
// events that a node watches, and further capabilities that a node may have.
//
// omis/linux implements Node for Linux, and omis/engine/fake a scripted one for tests. The
// engine and the placements import this package; it imports omis alone. Node states the
// rules for goroutines.
package node
