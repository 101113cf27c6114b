//go:build linux && amd64

package linux

import "sync"

// lifetimes has the lives (node.Hit.Life) of those threads whose beginning the owner observed. A life distinguishes
// threads with the same number: after a thread has ended, the kernel may give its number to another one.
type lifetimes struct {
	mu sync.Mutex
	of map[int]uint64
}

// begin records that a thread has begun its life.
func (l *lifetimes) begin(tid int, life uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = make(map[int]uint64)
	}
	l.of[tid] = life
	return life
}

func (l *lifetimes) end(tid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, tid)
}

func (l *lifetimes) find(tid int) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[tid]
}
