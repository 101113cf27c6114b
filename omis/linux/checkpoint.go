//go:build linux && amd64

package linux

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux/criu"
	"mirador/omis/node"
)

var _ node.Checkpointer = (*Node)(nil)

// checkpoints saves and restores processes by CRIU. Its methods may be called from any
// goroutine.
type checkpoints struct {
	n      *Node
	finder criu.Finder
	folder string // Config.Checkpoints
}

// Checkpoint: see node.Checkpointer. CRIU saves each process with its descendants.
func (n *Node) Checkpoint(ps []omis.ProcID, name string) error {
	tool, err := n.checkpoints.criu()
	if err != nil {
		return err
	}
	s, err := n.checkpoints.newCheckpoint(name)
	if err != nil {
		return err
	}
	for _, p := range ps {
		if err := proc.Alive(p); err != nil {
			return s.abandon(err)
		}
	}
	trees := familyTrees(ps)
	s.stopped = stoppedAmong(trees)
	loans, err := n.checkpoints.lend(trees)
	for _, l := range loans {
		if l.byOthers {
			s.stopped = append(s.stopped, l.pid)
		}
	}
	if err == nil {
		err = s.save(tool, trees)
	}
	for _, l := range loans {
		if lost := l.end(); err == nil {
			err = lost
		}
	}
	if err != nil {
		return s.abandon(err)
	}
	return s.complete()
}

// stoppedAmong returns the processes that job control has stopped. For traced processes
// lendOut finds that out.
func stoppedAmong(trees []familyTree) []int {
	var list []int
	for _, t := range trees {
		for _, pid := range t.members {
			if state, err := proc.ThreadState(pid, pid); err == nil && state == "T" {
				list = append(list, pid)
			}
		}
	}
	return list
}

// save dumps the trees.
func (s *checkpoint) save(tool criu.Program, trees []familyTree) error {
	for _, t := range trees {
		if err := os.Mkdir(s.images(t.root), 0o700); err != nil {
			return s.failed(err)
		}
		if err := tool.Dump(t.root, s.images(t.root)); err != nil {
			return t.unsaved(err)
		}
		s.roots = append(s.roots, t.root)
		s.members = append(s.members, t.members...)
	}
	return nil
}

// unsaved returns why a tree was not saved. If a thread came to a uprobe at an instruction
// that the kernel steps over, the kernel has mapped a page into its process for good; CRIU
// does not know such pages.
func (t *familyTree) unsaved(err error) error {
	for _, pid := range t.members {
		mapped, _ := proc.Maps(pid) // none if the process has ended
		if slices.ContainsFunc(mapped, func(m proc.Mapping) bool { return strings.HasPrefix(m.Path, "[uprobes") }) {
			return omis.Errorf(omis.OSError, "cannot save process %d: process %d has had uprobes, for example of probes in the kernel, and until it ends or executes another program it has a page of the kernel for them, which CRIU cannot save; processes that are started anew and observed without ('mirador serve --placements inline,trap') can be saved (%w)", t.root, pid, err)
		}
	}
	return omis.Errorf(omis.OSError, "cannot save process %d: %w", t.root, err)
}

// Restore: see node.Checkpointer. The former process ids must be free.
func (n *Node) Restore(name string) (restored []omis.ProcID, err error) {
	tool, err := n.checkpoints.criu()
	if err != nil {
		return nil, err
	}
	s, err := n.checkpoints.savedCheckpoint(name)
	if err != nil {
		return nil, err
	}
	for _, pid := range s.members {
		if err := awaitReaped(pid); err != nil {
			return nil, err
		}
	}
	for _, pid := range s.roots {
		if _, err := proc.ThreadState(pid, pid); err == nil {
			return nil, &node.Occupied{PID: pid, Who: "it still runs, or another process has got its pid"}
		}
	}
	defer func() {
		if err == nil {
			return
		}
		for _, p := range restored {
			_ = n.Signal(p, int(unix.SIGKILL)) // it fails only if the process has ended
		}
		restored = nil
	}()
	for _, root := range s.roots {
		pid, err := tool.Restore(s.images(root))
		if err != nil {
			return restored, omis.Errorf(omis.OSError, "cannot restore process %d: %w", root, err)
		}
		tree, err := n.checkpoints.welcomeAll(pid, s.stopped)
		restored = append(restored, tree...)
		if err != nil {
			return restored, err
		}
	}
	return restored, nil
}

// welcomeAll takes over a restored process and its descendants. Those that job control had
// stopped stay stopped by it, also after Continue.
func (cs *checkpoints) welcomeAll(root int, stopped []int) (ps []omis.ProcID, err error) {
	for _, pid := range append([]int{root}, descendants(root)...) {
		if state, err := proc.ThreadState(pid, pid); err == nil && state == "Z" {
			continue // a child that had ended and was not reaped
		}
		p, err := cs.n.Identify(pid)
		if err != nil {
			return ps, err
		}
		ps = append(ps, p)
		if err := cs.n.owners.ask(p, welcome{stays: slices.Contains(stopped, pid)}); err != nil {
			return ps, err
		}
	}
	return ps, nil
}

// Descendants: see node.Checkpointer.
func (n *Node) Descendants(p omis.ProcID) ([]int, error) {
	if err := proc.Alive(p); err != nil {
		return nil, err
	}
	return descendants(p.PID), nil
}

// Discard: see node.Checkpointer.
func (n *Node) Discard(name string) error {
	s, err := n.checkpoints.savedCheckpoint(name)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(s.folder); err != nil {
		return s.failed(err)
	}
	return nil
}

// reapPatience bounds the time for which a process that has ended may remain a zombie. Process 1, to which processes
// without a parent belong, reaps all of them, but on a busy machine it may take its time.
const (
	reapPatience       = 2 * time.Second
	reapPatienceOfInit = 30 * time.Second
)

// awaitReaped waits until a process that ends is reaped.
func awaitReaped(pid int) error {
	const pause = 5 * time.Millisecond
	for begin := time.Now(); proc.Ending(pid); time.Sleep(pause) {
		parent, patience := proc.Parent(pid), reapPatience
		if parent == 1 {
			patience = reapPatienceOfInit
		}
		if time.Since(begin) > patience {
			return &node.Occupied{PID: pid, Who: fmt.Sprintf("it has ended, but its parent (pid %d) has not taken notice of it", parent)}
		}
	}
	return nil
}

// criu returns the CRIU of this machine.
func (cs *checkpoints) criu() (criu.Program, error) {
	tool, err := cs.finder.Find(context.Background())
	if err != nil {
		return tool, omis.Errorf(omis.UnsupportedService, "processes are saved and restored by CRIU, as root: %w; 'make criu' where mirador is built builds one that works", err)
	}
	return tool, nil
}

// familyTree is a process with all its descendants, which are saved together.
type familyTree struct {
	root    int
	members []int // including root
}

// familyTrees returns the trees of those processes that descend from none of the others.
func familyTrees(ps []omis.ProcID) []familyTree {
	var trees []familyTree
	below := make(map[int]bool)
	for _, p := range ps {
		list := descendants(p.PID)
		trees = append(trees, familyTree{p.PID, append([]int{p.PID}, list...)})
		for _, pid := range list {
			below[pid] = true
		}
	}
	seen := make(map[int]bool)
	return slices.DeleteFunc(trees, func(t familyTree) bool {
		again := seen[t.root] || below[t.root]
		seen[t.root] = true
		return again
	})
}

// descendants lists the children of a process, their children, and so on.
func descendants(pid int) []int {
	var all []int
	tids, _ := proc.Threads(pid) // none if the process has ended
	for _, tid := range tids {
		for _, child := range proc.Children(pid, tid) {
			all = append(append(all, child), descendants(child)...)
		}
	}
	return all
}
