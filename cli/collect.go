package cli

import "runtime"

// spareHeap is memory that a gateway reserves and never touches, so that it takes no room.
const spareHeap = 64 << 20

// collectRarely makes the garbage collector wait until much has been allocated, until the function that it returns
// is called. The collector begins when as much was allocated as was in use before. A gateway uses little, so that
// thousands of requests a second made it run several times a second; it also shrinks the stacks of connections,
// which the next request grows again.
func collectRarely() (asUsual func()) {
	spare := make([]byte, spareHeap)
	return func() { runtime.KeepAlive(spare) }
}
