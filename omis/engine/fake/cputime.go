package fake

import (
	"mirador/omis"
)

// CPUTime implements node.CPUTimer.
func (n *Node) CPUTime(id omis.ProcID, tid int) (int64, error) {
	if _, err := n.called("CPUTime", id); err != nil {
		return 0, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cpu[tid], nil
}

// Use adds to the CPU time of a thread, in nanoseconds.
func (n *Node) Use(tid int, time int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cpu == nil {
		n.cpu = make(map[int]int64)
	}
	n.cpu[tid] += time
}
