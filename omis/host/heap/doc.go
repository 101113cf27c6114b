// Package heap finds out how much memory a program has allocated, from the tables of glibc's
// allocator in the memory of the process. It stops and changes nothing; the tables may
// change meanwhile, and a program can write anything into them, so every number that is read
// is checked, and reading ends after a limited number of steps.
//
// Only omis/linux may import it. A Reader may be used from any goroutine.
package heap
