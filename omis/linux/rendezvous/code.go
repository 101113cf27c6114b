//go:build linux && amd64

package rendezvous

import (
	"bytes"
	"unsafe"
)

// Times in nanoseconds.
const (
	// nap is how long a held thread waits before it looks at the owner.
	nap = 100_000_000

	// turn is how long a thread waits before it looks for a free slot again.
	turn = 1_000_000
)

// holdAddress tells where the linker put hold (hold_amd64.s). It is copied, never
// called.
func holdAddress() unsafe.Pointer

// endMark stands behind hold.
const endMark = "end here"

// holdCode copies hold: it is position-independent, but for the page before it.
func holdCode() []byte {
	code := unsafe.Slice((*byte)(holdAddress()), arenaMagic-arenaCode)
	n := bytes.Index(code, []byte(endMark))
	if n < 0 {
		panic("rendezvous: the code for the target has outgrown its room")
	}
	return bytes.Clone(code[:n])
}
