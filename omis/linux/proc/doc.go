// Package proc reads processes and threads from /proc: who they are, whether
// they may be observed, what they use, what is mapped into them. It traces and
// stops nobody.
//
// Only omis/linux, its subpackages and omis/place/kernel may import it. Its functions
// may be called from any goroutine.
package proc
