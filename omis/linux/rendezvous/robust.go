//go:build linux && amd64

package rendezvous

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// robust is the robust list of a server's thread: what the kernel goes through
// when the thread ends, however that comes about. Its nodes lie in memory of the
// monitor's own, which no target can write, each at the same distance from its
// word on the board.
type robust struct {
	bytes []byte
	head  *robustHead
	nodes *board // seen as a board: the node of a word is where the word would be
}

// robustHead is struct robust_list_head of the kernel.
type robustHead struct {
	list    uintptr // of nodes, each of them the address of the next
	offset  int     // from a node to its word
	pending uintptr // the node of a word that is being released
}

// newRobust lays the list out: the owner first, then the slots.
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

// enter makes the list that of the calling thread, in place of the one the C
// library may have set.
func (r *robust) enter() error { return setRobustList(r.head) }

// leave takes it back and frees it.
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

// node is the node of slot i.
func (r *robust) node(i int) uintptr { return uintptr(unsafe.Pointer(&r.nodes.slots[i].word)) }
