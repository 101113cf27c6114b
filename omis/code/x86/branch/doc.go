// Package branch finds the possible targets of direct branches in programs: a jump may
// displace several instructions only if no function branches into the middle of them.
//
// It does not disassemble, because not all code can be disassembled: it regards every
// sequence of bytes that could be a branch as one. So it finds more targets than there
// are, but never fewer; one in a thousand places is wrongly regarded as a target.
//
// Only omis/host, omis/code, omis/linux and omis/place may import it. Its functions may
// be called from any goroutine.
package branch
