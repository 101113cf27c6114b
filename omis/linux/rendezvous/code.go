//go:build linux && amd64

package rendezvous

import (
	"bytes"
	"unsafe"
)

// Times in nanoseconds.
const (
	// nap is the time after which a held thread checks whether the owner is alive.
	nap = 100_000_000

	// turn is the time after which a thread looks for a free slot again.
	turn = 1_000_000
)

// holdAddress returns the address of hold (hold_amd64.s), which is copied, never called.
func holdAddress() unsafe.Pointer

// endMark follows hold.
const endMark = "end here"

// holdCode copies hold, which is position-independent except for the page before it.
func holdCode() []byte {
	code := unsafe.Slice((*byte)(holdAddress()), arenaMagic-arenaCode)
	n := bytes.Index(code, []byte(endMark))
	if n < 0 {
		panic("rendezvous: the code for the target is larger than its reserved space")
	}
	return bytes.Clone(code[:n])
}
