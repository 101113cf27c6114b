package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"mirador/omis"
	"mirador/omis/engine/fake"
	"mirador/omis/node"
	"mirador/omis/program"
)

// crowdNode implements node.ThreadCrowd and node.ProcCrowd, but not for threads and processes with odd
// numbers.
type crowdNode struct {
	*fake.Node
	asked []string
}

func (n *crowdNode) Capabilities() program.Capabilities {
	c := n.Node.Capabilities()
	c.ThreadCrowd, c.ProcCrowd = n, n
	return c
}

func (n *crowdNode) ThreadInfos(p omis.ProcID, tids []int, f node.ThreadFields) map[int]node.ThreadInfo {
	n.asked = append(n.asked, fmt.Sprintf("%d %v %#x", p.PID, tids, uint32(f)))
	infos := map[int]node.ThreadInfo{99: {Name: "not requested"}}
	for _, tid := range tids {
		if tid%2 == 0 {
			infos[tid] = node.ThreadInfo{Name: "at once"}
		}
	}
	return infos
}

func (n *crowdNode) ProcInfos(list []omis.ProcID, f node.ProcFields) []*node.ProcInfo {
	infos := make([]*node.ProcInfo, len(list))
	for i, p := range list {
		n.asked = append(n.asked, fmt.Sprintf("%d %#x", p.PID, uint32(f)))
		if p.PID%2 == 0 {
			infos[i] = &node.ProcInfo{Priority: int64(p.PID)}
		}
	}
	return infos
}

// wasAsked compares the calls of the node since the last comparison.
func (n *crowdNode) wasAsked(t *testing.T, want string) {
	t.Helper()
	if asked := strings.Join(n.asked, "; "); asked != want {
		t.Errorf("asked for %q, want %q", asked, want)
	}
	n.asked = nil
}

// endBeforeSecond returns a script that makes the second call of a method fail, as if its object had
// ended.
func endBeforeSecond(method string) func(string) error {
	asked := 0
	return func(m string) error {
		if m == method {
			asked++
		}
		if m == method && asked == 2 {
			return omis.Errorf(omis.UnknownObject, "it has ended")
		}
		return nil
	}
}

// TestProcessesReadAtOnce checks that processes are read together, and the missing ones one by one.
func TestProcessesReadAtOnce(t *testing.T) {
	f := fake.New("here")
	n := &crowdNode{Node: f}
	b := startOver(t, []program.Machine{n}, []*fake.Node{f})
	for _, pid := range []int{11, 12, 13, 14} {
		f.Add(pid, nil, pid).Info.Priority = -1
		b.ask(fmt.Sprintf(`: proc_attach3([],%d,"")`, pid))
	}
	f.Script = endBeforeSecond("ProcInfo")
	got := b.ask(": proc_get_info([],0x1200)") // the local id, the priority
	for _, want := range []string{"11,-1", "12,12", "14,14", `"it has ended"`} {
		if strings.Count(got, want) != 1 {
			t.Errorf("no %s in %s", want, got)
		}
	}
	n.wasAsked(t, "11 0x1200; 12 0x1200; 13 0x1200; 14 0x1200")
	b.ask(": proc_get_info([p_1],0x1200) proc_get_info([],0) proc_get_info([],0x80000000)")
	n.wasAsked(t, "")
}

// TestThreadsReadAtOnce checks that the threads of a process are read together, and the missing ones
// one by one, which also finds errors.
func TestThreadsReadAtOnce(t *testing.T) {
	f := fake.New("here")
	n := &crowdNode{Node: f}
	b := startOver(t, []program.Machine{n}, []*fake.Node{f})
	for _, p := range []*fake.Process{f.Add(10, nil, 10, 11, 12), f.Add(20, nil, 20, 21)} {
		for _, th := range p.Threads {
			th.Info.Name = "one by one"
		}
	}
	b.ask(`: proc_attach3([],10,"") proc_attach3([],20,"")`)
	f.Script = endBeforeSecond("ThreadInfo")
	got := b.ask(": thread_get_info([],0x10080)")
	for _, want := range []string{`10,"at once"`, `11,"one by one"`, `12,"at once"`, `20,"at once"`, `"it has ended"`} {
		if strings.Count(got, want) != 1 {
			t.Errorf("no %s in %s", want, got)
		}
	}
	n.wasAsked(t, "10 [10 11 12] 0x10080; 20 [20 21] 0x10080")
	b.ask(": thread_get_info([t_1],0x10080) thread_get_info([],0) thread_get_info([],0x8000000)")
	n.wasAsked(t, "")
}
