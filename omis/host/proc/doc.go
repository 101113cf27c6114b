// Package proc reads /proc: processes and threads, whether they may be observed, their
// use of resources, their mappings and memory. It neither traces nor stops them.
//
// Only omis/host, omis/code, omis/linux and omis/place may import it. Its functions may
// be called from any goroutine.
package proc
