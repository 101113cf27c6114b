//go:build linux && amd64

package kernel

import (
	"encoding/binary"
	"iter"

	"golang.org/x/sys/unix"

	"mirador/omis/place/kernel/code"
)

// ring has the numbers of free rows. The monitor adds numbers at the tail, programs take them at
// the head; entries stay readable until they are overwritten.
type ring struct {
	bytes []byte
	seen  uint64 // the monitor has read the entries before this one
}

// ringBytes is the size of a ring.
const ringBytes = code.RingEntries + 4*code.RingSize

func (r *ring) entry(i uint64) []byte { return r.bytes[code.RingEntries+4*(i%code.RingSize):] }

// at returns the i-th row that was ever added, which must be among the last RingSize.
func (r *ring) at(i uint64) uint32 { return binary.NativeEndian.Uint32(r.entry(i)) }

func (r *ring) head() uint64 { return code.WordIn(r.bytes, code.RingHead).Load() }

func (r *ring) tail() uint64 { return code.WordIn(r.bytes, code.RingTail).Load() }

// ready returns the number of rows that programs may take.
func (r *ring) ready() int { return int(r.tail() - r.head()) }

// push adds a row. The caller has read all entries that programs have taken.
func (r *ring) push(n uint32) {
	binary.NativeEndian.PutUint32(r.entry(r.tail()), n)
	code.WordIn(r.bytes, code.RingTail).Add(1)
}

// taken yields the rows that programs have taken since the last call.
func (r *ring) taken() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for head := r.head(); r.seen < head; {
			n := r.at(r.seen)
			r.seen++
			if !yield(n) {
				return
			}
		}
	}
}

func (r *ring) close() error { return unix.Munmap(r.bytes) }
