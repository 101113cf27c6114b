// Package prototype reads C prototypes of functions, and decodes the parameters and
// results of their calls into OMIS values (the description file of OMIS, chapter 13, no.
// 4). The table of system calls uses this format, and so do the files that describe
// libraries without debug information:
//
//	// sends the active buffer
//	int pvm_send(int tid, int msgtag);
//	typedef long MPI_Aint;
//	ssize_t read(int fd, out(result) void *buf, size_t count);
//	pid_t wait4(pid_t pid, out int *status, int options, void *usage);
//
// Before a pointer, the words in, out and inout say when to read what it points to: at
// the start of the call, at its end, or both. The amount follows in brackets: a number, a
// parameter, *parameter for what a parameter points to, or result. It counts bytes for
// a pointer to void, characters or structures (the value is binary), and elements for
// a pointer to numbers (the value is a list). NUMBER * before it multiplies. Without
// brackets the pointer leads to one element, to a string of characters, or, for in char
// **argv, to a list of strings that ends with NULL. Pointers to char and const char are
// in by default; any other pointer is shown as an address.
//
// Only omis/host, omis/code, omis/linux and omis/place may import it. Its functions have
// no side effects and may be called from any goroutine.
package prototype
