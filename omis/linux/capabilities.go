//go:build linux && amd64

package linux

import (
	"mirador/omis/node"
	"mirador/omis/program"
)

// Capabilities returns what the node can do. It has no placements; monitors add them.
func (n *Node) Capabilities() program.Capabilities {
	return program.Capabilities{
		Capabilities: node.Capabilities{
			Registers: n, CallNames: n, MemoryWriter: n, Suspender: n, ThreadControl: n, ThreadCrowd: n, ProcCrowd: n, CPUTimer: n,
			NodeInformer: n, Checkpointer: n, Detector: n, Equipment: n, Neighbours: n, GoroutineLister: n, StartFinder: n,
			Meters: n.meters,
		},
		Loader: n, TimingChecker: n, MarksCalls: n.marks,
	}
}
