// Package prototype reads C prototypes of functions, and decodes the parameters
// and results of their calls into OMIS values (the description file of OMIS,
// chapter 13, no. 4). The table of system calls is written in it, and so are the
// files by which libraries without debug information are described:
//
//	// sends the active buffer
//	int pvm_send(int tid, int msgtag);
//	typedef long MPI_Aint;
//	ssize_t read(int fd, out(result) void *buf, size_t count);
//	pid_t wait4(pid_t pid, out int *status, int options, void *usage);
//
// Before a pointer, in, out and inout say when what it points to is read: as the
// call starts, as it ends, or both. In brackets stands how much: a number, a
// parameter, *parameter for what a parameter points to, result; of bytes behind
// a pointer to void, characters or structures (a binary value), of elements
// behind a pointer to numbers (a list). NUMBER * before it multiplies. Without
// brackets it is one element, a string of characters, or for in char **argv a
// list of strings that ends with NULL. A const char * is in, too, unless it says
// otherwise, and so is a char *; any other pointer is told as an address.
//
// Only omis/host, omis/code, omis/linux and omis/place may import it. Its functions are pure and
// may be called from any goroutine.
package prototype
