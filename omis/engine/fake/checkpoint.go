package fake

import (
	"slices"
	"sync"

	"mirador/omis"
)

// Disk contains the checkpoints of the nodes that share it.
type Disk struct {
	mu    sync.Mutex
	saved map[string][]saved
}

type saved struct {
	node   *Node
	argv   []string
	tids   []int
	memory []byte
	at     uint64
}

// NewDisk makes an empty disk.
func NewDisk() *Disk { return &Disk{saved: make(map[string][]saved)} }

func (n *Node) Checkpoint(ids []omis.ProcID, name string) error {
	var list []saved
	for _, id := range ids {
		p, err := n.called("Checkpoint", id)
		if err != nil {
			return err
		}
		tids, err := n.Threads(id)
		if err != nil {
			return err
		}
		p.mu.Lock()
		list = append(list, saved{node: n, argv: p.Info.Argv, tids: tids, memory: slices.Clone(p.Memory), at: p.MemoryAt})
		p.mu.Unlock()
	}
	n.Disk.mu.Lock()
	defer n.Disk.mu.Unlock()
	n.Disk.saved[name] = append(n.Disk.saved[name], list...)
	return nil
}

// Restore makes new processes from the checkpoint of this node. If this node saved none of that
// name, Restore uses the checkpoints of other nodes: the processes migrate.
func (n *Node) Restore(name string) ([]omis.ProcID, error) {
	if err := n.ask("Restore"); err != nil {
		return nil, err
	}
	n.Disk.mu.Lock()
	list := slices.Clone(n.Disk.saved[name])
	n.Disk.mu.Unlock()
	if len(list) == 0 {
		return nil, omis.Errorf(omis.UnknownObject, "there is no checkpoint %q", name)
	}
	if slices.ContainsFunc(list, func(s saved) bool { return s.node == n }) {
		list = slices.DeleteFunc(list, func(s saved) bool { return s.node != n })
	}
	var ids []omis.ProcID
	for _, s := range list {
		n.mu.Lock()
		n.nextPID++
		pid := n.nextPID
		n.mu.Unlock()
		p := n.Add(pid, s.argv, s.tids...)
		p.Memory, p.MemoryAt = s.memory, s.at
		for _, t := range p.Threads {
			t.Stopped = true
		}
		ids = append(ids, p.ID)
	}
	return ids, nil
}

func (n *Node) Discard(name string) error {
	n.Disk.mu.Lock()
	defer n.Disk.mu.Unlock()
	delete(n.Disk.saved, name)
	return nil
}

// Descendants returns none: processes of the fake have no children.
func (n *Node) Descendants(omis.ProcID) ([]int, error) { return nil, nil }
