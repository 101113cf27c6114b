//go:build linux && amd64

package kernel

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"mirador/omis/linux/tracepoint"
)

// controlWords is how many words the monitor shares with all of its programs: a few
// for each program, process and store.
const controlWords = 1 << 16

// control is memory that the monitor shares with its programs. Who uses it takes
// turns by Placer.mu, but for the words themselves.
type control struct {
	words *ebpf.Map // an array of one element
	bytes []byte    // the same, as the monitor sees it
	free  []word
	next  word
}

// word is the number of a word of the control block.
type word uint32

func newControl(set *tracepoint.Set) (*control, error) {
	m, err := set.Map(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8 * controlWords, MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE})
	if err != nil {
		return nil, err
	}
	b, err := unix.Mmap(m.FD(), 0, 8*controlWords, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("cannot share memory with programs in the kernel: %w", err)
	}
	return &control{words: m, bytes: b}, nil
}

// take reserves a word; it is zero.
func (c *control) take() (word, error) {
	if n := len(c.free); n > 0 {
		w := c.free[n-1]
		c.free = c.free[:n-1]
		c.at(w).Store(0)
		return w, nil
	}
	if c.next == controlWords {
		return 0, fmt.Errorf("the kernel runs as many programs for this monitor as it has room for (%d words)", controlWords)
	}
	c.next++
	return c.next - 1, nil
}

// give lets others use a word again.
func (c *control) give(w word) { c.free = append(c.free, w) }

func (c *control) at(w word) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&c.bytes[8*w]))
}

// address puts the address of a word into a register of a program.
func (c *control) address(to asm.Register, w word) asm.Instruction {
	return asm.LoadMapValue(to, c.words.FD(), uint32(8*w))
}

func (c *control) close() error { return unix.Munmap(c.bytes) }
