// Package proc reads processes and threads from /proc: who they are, whether
// they may be observed, what they use, what is mapped into them. It traces and
// stops nobody.
//
// Only omis/host, omis/code, omis/linux and omis/place may import it. Its functions
// may be called from any goroutine.
package proc
