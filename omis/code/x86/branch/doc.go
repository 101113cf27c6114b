// Package branch tells where the direct branches of programs may lead: code that
// several instructions are moved away from must not be gone to in its middle, by
// whatever function.
//
// The branches are not those of a disassembly, which cannot be had of any code:
// everything that would be one, if an instruction began there, is taken for one.
// So there are more of them than in truth, never fewer, and one in a thousand
// places is said to be gone to that is not.
//
// Only omis/host, omis/code, omis/linux and omis/place may import it. Its functions may be called from any goroutine.
package branch
