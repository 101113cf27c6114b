//go:build linux && amd64

package rendezvous

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// robust is the robust list of a server's thread, which the kernel processes when the
// thread ends for any reason. Its nodes are in the monitor's private memory, which
// targets cannot write; all nodes have the same distance from their words on the board.
type robust struct {
	bytes []byte
	head  *robustHead
	nodes *board // laid out like a board: a node has the offset of its word
}

// robustHead is struct robust_list_head of the kernel.
type robustHead struct {
	list    uintptr // list of nodes; each contains the address of the next
	offset  int     // from a node to its word
	pending uintptr // node of a word that is being released
}

// newRobust makes the list: the owner first, then the slots.
func newRobust(b *board) (*robust, error) {
	mem, err := unix.Mmap(-1, 0, boardSize+int(unsafe.Sizeof(robustHead{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("cannot map a robust list: %w", err)
	}
	r := &robust{bytes: mem, head: (*robustHead)(unsafe.Pointer(&mem[boardSize])), nodes: (*board)(unsafe.Pointer(&mem[0]))}
	r.head.offset = int(uintptr(unsafe.Pointer(b)) - uintptr(unsafe.Pointer(r.nodes)))
	last := &r.head.list
	link := func(word *uint32) {
		*last = uintptr(unsafe.Pointer(word))
		last = (*uintptr)(unsafe.Pointer(word))
	}
	link(&r.nodes.owner)
	for i := range r.nodes.slots {
		link(&r.nodes.slots[i].word)
	}
	*last = uintptr(unsafe.Pointer(r.head))
	return r, nil
}

// enter sets the list of the calling thread; it replaces the list that a C library may
// have set.
func (r *robust) enter() error { return setRobustList(r.head) }

// leave unsets the list and frees it.
func (r *robust) leave() {
	_ = setRobustList(nil)
	_ = unix.Munmap(r.bytes)
}

func setRobustList(head *robustHead) error {
	_, _, errno := unix.RawSyscall(unix.SYS_SET_ROBUST_LIST, uintptr(unsafe.Pointer(head)), unsafe.Sizeof(robustHead{}), 0)
	if errno != 0 {
		return fmt.Errorf("cannot set a robust list: %w", errno)
	}
	return nil
}

// node returns the node of slot i.
func (r *robust) node(i int) uintptr { return uintptr(unsafe.Pointer(&r.nodes.slots[i].word)) }
