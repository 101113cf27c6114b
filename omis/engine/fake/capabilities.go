package fake

import (
	"slices"
	"strings"

	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
)

// Capabilities returns what the node can do. It has costs, but no placements.
func (n *Node) Capabilities() program.Capabilities {
	return program.Capabilities{
		Capabilities: node.Capabilities{
			Registers: n, CallNames: n, MemoryWriter: n, Suspender: n, ThreadControl: n, CPUTimer: n, NodeInformer: n,
			Checkpointer: n, MessagePassing: &n.post, Detector: n, Equipment: n,
		},
		Loader: n, Costs: n,
	}
}

// thread calls do for a thread, with the process locked.
func (n *Node) thread(method string, id omis.ProcID, tid int, do func(*Thread) error) error {
	p, err := n.called(method, id)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.thread(tid)
	if err != nil {
		return err
	}
	return do(t)
}

// registers returns n registers of a bank, or an error if the bank has fewer.
func registers[R any](bank []R, first, n int) ([]R, error) {
	if first+n > len(bank) {
		return nil, omis.Errorf(omis.ParameterError, "there is no register %d", first+n-1)
	}
	return bank[first : first+n], nil
}

// RegisterCounts returns the numbers of registers that a Thread has.
func (n *Node) RegisterCounts() (integer, floating int) {
	return len(Thread{}.Ints), len(Thread{}.Floats)
}

func (n *Node) ReadIntRegs(id omis.ProcID, tid, first, count int) (list []uint64, err error) {
	err = n.thread("ReadIntRegs", id, tid, func(t *Thread) error {
		regs, err := registers(t.Ints[:], first, count)
		list = slices.Clone(regs)
		return err
	})
	return list, err
}

func (n *Node) WriteIntRegs(id omis.ProcID, tid, first int, values []uint64) error {
	return n.thread("WriteIntRegs", id, tid, func(t *Thread) error {
		regs, err := registers(t.Ints[:], first, len(values))
		copy(regs, values)
		return err
	})
}

func (n *Node) ReadFPRegs(id omis.ProcID, tid, first, count int) (list []float64, err error) {
	err = n.thread("ReadFPRegs", id, tid, func(t *Thread) error {
		regs, err := registers(t.Floats[:], first, count)
		list = slices.Clone(regs)
		return err
	})
	return list, err
}

func (n *Node) WriteFPRegs(id omis.ProcID, tid, first int, values []float64) error {
	return n.thread("WriteFPRegs", id, tid, func(t *Thread) error {
		regs, err := registers(t.Floats[:], first, len(values))
		copy(regs, values)
		return err
	})
}

// Numbers of registers.
const (
	stackPointer   = 7
	programCounter = 16
)

func (n *Node) Goto(id omis.ProcID, tid int, addr uint64) error {
	return n.thread("Goto", id, tid, func(t *Thread) error {
		t.Ints[programCounter] = addr
		return nil
	})
}

func (n *Node) Call(id omis.ProcID, tid int, addr uint64) error {
	return n.thread("Call", id, tid, func(t *Thread) error {
		t.Ints[stackPointer] -= 8
		t.Ints[programCounter] = addr
		return nil
	})
}

// ReadMemory reads from the process's memory, which is one contiguous area.
func (n *Node) ReadMemory(id omis.ProcID, addr uint64, buf []byte) (int, error) {
	p, err := n.called("ReadMemory", id)
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if addr < p.MemoryAt || addr >= p.MemoryAt+uint64(len(p.Memory)) {
		return 0, nil
	}
	return copy(buf, p.Memory[addr-p.MemoryAt:]), nil
}

func (n *Node) WriteMemory(id omis.ProcID, addr uint64, data []byte) error {
	p, err := n.called("WriteMemory", id)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ReadOnly != nil {
		if err := p.ReadOnly(addr); err != nil {
			return err
		}
	}
	if addr < p.MemoryAt || addr+uint64(len(data)) > p.MemoryAt+uint64(len(p.Memory)) {
		return omis.Errorf(omis.ParameterError, "cannot write %d bytes at %#x: nothing is mapped there", len(data), addr)
	}
	copy(p.Memory[addr-p.MemoryAt:], data)
	return nil
}

// CheckCall refuses names that begin with "no_".
func (n *Node) CheckCall(name string) error {
	if strings.HasPrefix(name, "no_") {
		return omis.Errorf(omis.ParameterError, "there is no system call %s", name)
	}
	return nil
}

func (n *Node) Suspend(id omis.ProcID, tids []int) error {
	return n.count("Suspend", id, tids, 1)
}

func (n *Node) Resume(id omis.ProcID, tids []int) error {
	return n.count("Resume", id, tids, -1)
}

// count changes the suspend counts of all given threads, or after an error of none.
func (n *Node) count(method string, id omis.ProcID, tids []int, by int) error {
	p, err := n.called(method, id)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	list := slices.Clone(p.Threads)
	if len(tids) > 0 {
		list = make([]*Thread, len(tids))
	}
	for i, tid := range tids {
		if list[i], err = p.thread(tid); err != nil {
			return err
		}
	}
	for _, t := range list {
		if t.Suspended+by < 0 {
			return omis.Errorf(omis.ParameterError, "thread %d is not suspended", t.TID)
		}
	}
	for _, t := range list {
		t.Suspended += by
	}
	return nil
}

func (n *Node) SignalThread(id omis.ProcID, tid, sig int) error {
	return n.thread("SignalThread", id, tid, func(t *Thread) error {
		t.Signals = append(t.Signals, sig)
		return nil
	})
}

func (n *Node) SetThreadPriority(id omis.ProcID, tid, nice int) error {
	return n.thread("SetThreadPriority", id, tid, func(t *Thread) error {
		t.Nice = nice
		return nil
	})
}

func (n *Node) SetPriority(id omis.ProcID, nice int) error {
	p, err := n.called("SetPriority", id)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Nice = nice
	return nil
}

func (n *Node) LetGo(id omis.ProcID, tid int) error {
	return n.thread("LetGo", id, tid, func(t *Thread) error {
		t.Released = true
		return nil
	})
}

// NodeInfo returns Groups. The default of the first group is the node's name.
func (n *Node) NodeInfo(flags uint32) ([]omis.Value, error) {
	if err := n.ask("NodeInfo"); err != nil {
		return nil, err
	}
	var list []omis.Value
	for bit, group := range n.Groups {
		if flags&(1<<bit) == 0 {
			continue
		}
		if bit == 0 && group == nil {
			group = []omis.Value{omis.String(n.name)}
		}
		list = append(list, group...)
	}
	return list, nil
}

// CanDetect returns an element of Blind.
func (n *Node) CanDetect(kind node.EventKind) error { return n.Blind[kind] }

// LacksForEvent returns an element of Lacks.
func (n *Node) LacksForEvent(kind node.EventKind) error { return n.Lacks[kind] }

// LacksForCheckpoint returns LacksCRIU.
func (n *Node) LacksForCheckpoint() error { return n.LacksCRIU }
