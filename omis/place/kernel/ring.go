//go:build linux && amd64

package kernel

import (
	"encoding/binary"
	"iter"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"mirador/omis/host/tracepoint"
)

// ring holds the numbers of rows that programs may take. The monitor puts them in at the
// tail, programs take them out at the head.
type ring struct {
	words *ebpf.Map // an array of one element
	bytes []byte
	seen  uint64 // up to where the monitor has looked
}

// Offsets in a ring.
const (
	ringHead    = 0
	ringTail    = 64 // in a cache line of its own
	ringEntries = 128
)

// ringSize is how many it holds at most.
const ringSize = 1 << 16

func newRing(set *tracepoint.Set) (r ring, err error) {
	r.words, r.bytes, err = sharedArray(set, ringEntries+4*ringSize)
	return r, err
}

func (r *ring) entry(i uint64) []byte { return r.bytes[ringEntries+4*(i%ringSize):] }

// at is the i-th row that was ever put in, one of the last ringSize.
func (r *ring) at(i uint64) uint32 { return binary.NativeEndian.Uint32(r.entry(i)) }

// ready is how many rows programs may take.
func (r *ring) ready() int {
	return int(wordIn(r.bytes, ringTail).Load() - wordIn(r.bytes, ringHead).Load())
}

// push puts a row in. What programs have taken out must have been looked at.
func (r *ring) push(n uint32) {
	tail := wordIn(r.bytes, ringTail)
	binary.NativeEndian.PutUint32(r.entry(tail.Load()), n)
	tail.Add(1)
}

// taken are the rows that were taken out since the last time.
func (r *ring) taken() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for head := wordIn(r.bytes, ringHead).Load(); r.seen < head; {
			n := r.at(r.seen)
			r.seen++
			if !yield(n) {
				return
			}
		}
	}
}

func (r *ring) close() error { return unix.Munmap(r.bytes) }
