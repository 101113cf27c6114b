//go:build linux && amd64

package linux

import (
	"sync"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/host/sched"
	"mirador/omis/linux/unwind"
	"mirador/omis/node"
)

var (
	_ node.NodeInformer = (*Node)(nil)
	_ node.Detector     = (*Node)(nil)
	_ node.Equipment    = (*Node)(nil)
	_ node.ThreadCrowd  = (*Node)(nil)
	_ node.ProcCrowd    = (*Node)(nil)
)

// NodeInfo: see node.NodeInformer.
func (n *Node) NodeInfo(flags uint32) ([]omis.Value, error) { return n.machine.Info(flags) }

// CanDetect: see node.Detector.
func (n *Node) CanDetect(kind node.EventKind) error {
	switch kind {
	case node.EventReachedAddr, node.EventProcTerminated, node.EventThreadCreated, node.EventThreadTerminated, node.EventProcCreated,
		node.EventSignal, node.EventSysCallStarted, node.EventSysCallEnded, node.EventLibCallStarted, node.EventLibCallEnded,
		node.EventStepped, node.EventSteppedOver, node.EventThreadStopped, node.EventThreadContinued,
		node.EventScheduled, node.EventDescheduled, node.EventBlocked, node.EventBlockedOnIO, node.EventUnblocked:
		return nil
	case node.EventNodeAdded, node.EventNodeRemoved:
		return omis.Errorf(omis.UnsupportedService, "threads of Linux add and remove no nodes; a message-passing library could report that, and none is observed")
	}
	return omis.Errorf(omis.UnsupportedService, "event %d cannot be detected", kind)
}

// LacksForEvent: see node.Equipment. Scheduling events require eBPF programs and a kernel that
// describes its types.
func (n *Node) LacksForEvent(kind node.EventKind) error {
	switch kind {
	case node.EventScheduled, node.EventDescheduled, node.EventBlocked, node.EventBlockedOnIO, node.EventUnblocked:
		return canSchedule()
	}
	return nil
}

// canSchedule tries once: neither the kernel nor the privileges of the monitor change.
var canSchedule = sync.OnceValue(sched.Check)

// LacksForCheckpoint: see node.Equipment.
func (n *Node) LacksForCheckpoint() error {
	_, err := n.checkpoints.criu()
	return err
}

// ThreadInfo: see node.Node. What /proc does not show is read from the thread's stack, for
// which the thread is stopped.
func (n *Node) ThreadInfo(p omis.ProcID, tid int, f node.ThreadFields) (node.ThreadInfo, error) {
	info, err := n.reader.ThreadInfo(p, tid, f)
	if err != nil {
		return info, err
	}
	if f&node.ThreadParent != 0 {
		info.Parent = n.owners.creator(p, tid)
	}
	if f&node.ThreadStackSize != 0 && info.StackSize < 0 {
		info.StackSize, err = n.stacks.stackSize(p, tid)
	}
	if f&node.ThreadRootFunct != 0 && err == nil {
		info.RootFunction, err = n.stacks.rootFunction(p, tid)
	}
	return info, err
}

// ThreadInfos: see node.ThreadCrowd.
func (n *Node) ThreadInfos(p omis.ProcID, tids []int, f node.ThreadFields) map[int]node.ThreadInfo {
	if f&stackFields == 0 || len(tids) < 2 {
		return n.reader.ThreadInfos(p, tids, f)
	}
	infos := n.reader.ThreadInfos(p, tids, f&^stackFields)
	if infos == nil {
		infos = make(map[int]node.ThreadInfo, len(tids))
	}
	known := make(map[int]node.ThreadInfo, len(tids))
	for tid, s := range n.stacks.read(p, tids, f) {
		info, ok := infos[tid]
		if !ok {
			var err error
			if info, err = n.ThreadInfo(p, tid, f&^stackFields); err != nil {
				continue
			}
		}
		info.RootFunction, info.StackSize = s.RootFunction, s.StackSize
		known[tid] = info
	}
	return known
}

// stackFields are the components that are read from the stack of a thread.
const stackFields = node.ThreadRootFunct | node.ThreadStackSize

// read reads the components that the stacks of threads show. It stops all threads that it must
// stop together. Threads that cannot be read are missing.
func (sr *stackReader) read(p omis.ProcID, tids []int, f node.ThreadFields) map[int]node.ThreadInfo {
	infos := make(map[int]node.ThreadInfo, len(tids))
	if f&node.ThreadRootFunct == 0 {
		var running []int
		blocked := proc.BlockedStackSizes(p.PID, tids)
		for _, tid := range tids {
			if size, ok := blocked[tid]; ok {
				infos[tid] = node.ThreadInfo{StackSize: size}
			} else {
				running = append(running, tid)
			}
		}
		tids = running
	}
	if len(tids) == 0 {
		return infos
	}
	captures, layout, err := sr.captured(p, tids)
	if err != nil {
		return infos
	}
	maps, err := proc.Maps(p.PID)
	if err != nil {
		return infos
	}
	for i := range captures {
		c := &captures[i]
		if c.err != nil {
			continue
		}
		var info node.ThreadInfo
		if f&node.ThreadStackSize != 0 {
			info.StackSize = -1
			if m, ok := maps.At(c.regs.Rsp); ok {
				info.StackSize = int64(m.End - m.Start)
			}
		}
		if f&node.ThreadRootFunct != 0 {
			trace := sr.walk(p, c, layout, 0)
			if trace.Err != nil {
				continue
			}
			info.RootFunction = rootOf(layout, trace.Frames)
		}
		infos[c.tid] = info
	}
	return infos
}

// ProcInfos: see node.ProcCrowd.
func (n *Node) ProcInfos(list []omis.ProcID, f node.ProcFields) []*node.ProcInfo {
	return n.reader.ProcInfos(list, f)
}

// stackSize returns the stack size of a running thread.
func (sr *stackReader) stackSize(p omis.ProcID, tid int) (int64, error) {
	const sp = 7
	regs, err := sr.n.ReadIntRegs(p, tid, sp, 1)
	if err != nil {
		return -1, err
	}
	return proc.StackSize(p.PID, regs[0])
}

// rootFunction returns the function in which a thread began, without the functions that start
// programs and threads; 0 if the stack does not show it.
func (sr *stackReader) rootFunction(p omis.ProcID, tid int) (uint64, error) {
	layout, err := sr.n.images.Layout(p.PID)
	if err != nil {
		return 0, err
	}
	traces, err := sr.n.Backtraces(p, []int{tid}, 0)
	if err != nil {
		return 0, err
	}
	if traces[0].Err != nil {
		return 0, traces[0].Err
	}
	return rootOf(layout, traces[0].Frames), nil
}

// rootOf returns the outermost function outside the module that starts threads (clone and
// start_thread of the C library) which is not the program's entry point, since that calls this
// module to call main. If there is only one module, it returns the outermost function.
func rootOf(layout *unwind.Layout, frames []node.Frame) uint64 {
	if len(frames) == 0 {
		return 0
	}
	// A return address may be the first address after its function.
	at := func(i int) uint64 {
		if i == 0 {
			return frames[0].PC
		}
		return frames[i].PC - 1
	}
	outermost := len(frames) - 1
	i := outermost
	if i > 0 && layout.ModuleAt(at(i)) != layout.ModuleAt(at(i-1)) {
		i-- // the program's entry point
	}
	starter := layout.ModuleAt(at(i))
	for i > 0 && layout.ModuleAt(at(i)) == starter {
		i--
	}
	if layout.ModuleAt(at(i)) == starter {
		i = outermost
	}
	return layout.Function(at(i))
}

// creator returns the thread that created another, 0 if the creation was not observed.
func (w *owners) creator(p omis.ProcID, tid int) int {
	o := w.of(p)
	if o == nil {
		return 0
	}
	c := &askCreator{tid: tid}
	if a, posted := o.box.ask(c); posted {
		_ = a.wait()
	}
	return c.creator
}

type askCreator struct{ tid, creator int }

func (c *askCreator) do(o *owner) error {
	if t := o.tracer.threads[c.tid]; t != nil {
		c.creator = t.parent
	}
	return nil
}
