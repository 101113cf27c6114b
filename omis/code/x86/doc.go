// Package x86 encodes the few x86-64 instructions that the placement "inline" makes its
// code of. Memory may be addressed relative to where the code will stand. A Code belongs to one goroutine at a
// time.
//
// Only omis/place/inline imports it.
package x86
