package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"mirador/omis"
	"mirador/omis/engine/fake"
)

// crowdNode reads all threads of a process at once, but those of odd numbers.
type crowdNode struct {
	*fake.Node
	asked []string
}

func (n *crowdNode) ThreadInfos(p omis.ProcID, tids []int, f omis.ThreadFields) map[int]omis.ThreadInfo {
	n.asked = append(n.asked, fmt.Sprintf("%d %v %#x", p.PID, tids, uint32(f)))
	infos := map[int]omis.ThreadInfo{99: {Name: "nobody asked"}}
	for _, tid := range tids {
		if tid%2 == 0 {
			infos[tid] = omis.ThreadInfo{Name: "at once"}
		}
	}
	return infos
}

// ProcInfos reads those of even numbers.
func (n *crowdNode) ProcInfos(list []omis.ProcID, f omis.ProcFields) []*omis.ProcInfo {
	infos := make([]*omis.ProcInfo, len(list))
	for i, p := range list {
		n.asked = append(n.asked, fmt.Sprintf("%d %#x", p.PID, uint32(f)))
		if p.PID%2 == 0 {
			infos[i] = &omis.ProcInfo{Priority: int64(p.PID)}
		}
	}
	return infos
}

// Processes, too.
func TestProcessesReadAtOnce(t *testing.T) {
	f := fake.New("here")
	n := &crowdNode{Node: f}
	b := startOver(t, []omis.Node{n}, []*fake.Node{f})
	for _, pid := range []int{11, 12, 13, 14} {
		f.Add(pid, nil, pid).Info.Priority = -1
		b.ask(fmt.Sprintf(`: proc_attach3([],%d,"")`, pid))
	}
	one := 0
	f.Script = func(method string) error {
		if method != "ProcInfo" {
			return nil
		}
		if one++; one == 2 {
			return omis.Errorf(omis.UnknownObject, "it has ended")
		}
		return nil
	}
	got := b.ask(": proc_get_info([],0x1200)") // the local id, the priority
	for _, want := range []string{"11,-1", "12,12", "14,14", `"it has ended"`} {
		if strings.Count(got, want) != 1 {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if asked := strings.Join(n.asked, "; "); asked != "11 0x1200; 12 0x1200; 13 0x1200; 14 0x1200" {
		t.Errorf("asked for %s", asked)
	}
	n.asked = nil
	b.ask(": proc_get_info([p_1],0x1200) proc_get_info([],0) proc_get_info([],0x2000000)")
	if n.asked != nil {
		t.Errorf("asked for %s", n.asked)
	}
}

// Threads of a process are read at once; those that are missing then are read one
// by one, which tells of errors, too.
func TestThreadsReadAtOnce(t *testing.T) {
	f := fake.New("here")
	n := &crowdNode{Node: f}
	b := startOver(t, []omis.Node{n}, []*fake.Node{f})
	for _, p := range []*fake.Process{f.Add(10, nil, 10, 11, 12), f.Add(20, nil, 20, 21)} {
		for _, th := range p.Threads {
			th.Info.Name = "one by one"
		}
	}
	b.ask(`: proc_attach3([],10,"") proc_attach3([],20,"")`)
	one := 0
	f.Script = func(method string) error {
		if method != "ThreadInfo" {
			return nil
		}
		if one++; one == 2 {
			return omis.Errorf(omis.UnknownObject, "it has ended")
		}
		return nil
	}
	got := b.ask(": thread_get_info([],0x10080)")
	for _, want := range []string{`10,"at once"`, `11,"one by one"`, `12,"at once"`, `20,"at once"`, `"it has ended"`} {
		if strings.Count(got, want) != 1 {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if asked := strings.Join(n.asked, "; "); asked != "10 [10 11 12] 0x10080; 20 [20 21] 0x10080" {
		t.Errorf("asked for %s", asked)
	}
	n.asked = nil
	b.ask(": thread_get_info([t_1],0x10080) thread_get_info([],0) thread_get_info([],0x20000)")
	if n.asked != nil {
		t.Errorf("asked for %s", n.asked)
	}
}
