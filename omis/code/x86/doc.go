// Package x86 encodes the x86-64 instructions that the placement inline uses. Memory may
// be addressed relative to the code. A Code belongs to one goroutine at a time.
//
// Only omis/place/inline imports it.
package x86
