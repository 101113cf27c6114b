package engine_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/syntax"
)

func TestNothingIsVisibleBeforeAttach(t *testing.T) {
	b := start(t)
	b.node.Add(812, []string{"a"}, 812)
	b.want(": thread_get_info([],0) node_get_info([],0)", "0 OMIS_OK []\n1\n2\n")
	b.want(`: node_attach2("here") node_get_info([],1) proc_attach3([n_1],812,"")`,
		"0 OMIS_OK []\n1 OMIS_OK [] n_1\n2 OMIS_OK [n_1] \"here\"\n3 OMIS_OK [n_1] p_1\n")
	b.want(`: node_attach2("there")`, "0 OMIS_OK []\n1 OMIS_PARAMETER_ERROR(28) [] \"there is no node \\\"there\\\": this monitor observes \\\"here\\\" alone\"\n")
	b.want(": node_detach([]) proc_get_info([],0) proc_get_info([p_1],0)",
		"0 OMIS_OK []\n1 OMIS_OK []\n2\n3 OMIS_UNKNOWN_OBJECT(24) [p_1] \"p_1 is not attached to this tool\"\n")
	b.want(": proc_attach([p_1]) proc_get_info([],0x200)", "0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK [p_1] 812\n")
}

func TestScopesAreApart(t *testing.T) {
	b := start(t)
	p := b.node.Add(812, []string{"a"}, 812)
	other := b.engine.Tool("other")
	b.ask(`: proc_attach3([],812,"") user_event_create()`)
	if got := b.askBy(other, ": proc_get_info([p_1],0) user_event_raise(e_1,[],0)"); !strings.Contains(got, "not attached") || !strings.Contains(got, "no such user event") {
		t.Errorf("another tool got %s", got)
	}
	b.askBy(other, ": proc_attach([p_1])")
	for _, tool := range []string{"test", "other"} {
		b.askBy(b.engine.Tool(tool), "thread_reached_addr([],0x10) : print([1])")
	}
	b.ask(": csr_enable([])")
	b.askBy(other, ": csr_enable([])")
	if n := p.Watches(); n != 1 {
		t.Errorf("%d watches for two tools at one place, want 1", n)
	}
	b.ask(": csr_disable([])")
	if n := p.Watches(); n != 1 {
		t.Errorf("%d watches after one of two tools left", n)
	}
	if err := other.Finalize(); err != nil {
		t.Error(err)
	}
	if n := p.Watches(); n != 0 {
		t.Errorf("%d watches after both tools left", n)
	}
	if _, err := other.Request(context.Background(), ": version()", nil, 0); err == nil {
		t.Error("a finalized tool answered")
	}
}

func TestMonitorRefusesItself(t *testing.T) {
	b := start(t)
	b.node.Add(os.Getpid(), []string{"mirador"}, os.Getpid())
	if got := b.ask(fmt.Sprintf(`: proc_attach3([],%d,"")`, os.Getpid())); !strings.Contains(got, "OMIS_NO_PERMISSION(32) [n_1]") {
		t.Error(got)
	}
}

func TestEndedProcess(t *testing.T) {
	b := start(t)
	p := b.node.Add(812, []string{"a"}, 812, 813)
	c := b.listen("proc_has_terminated([]) : print([$proc,$thread])", 0)
	b.ask(`: proc_attach3([],812,"") csr_enable([])`)
	b.want(": thread_get_info([],0x80)", "0 OMIS_OK []\n1 OMIS_OK [t_1] 812\n1 OMIS_OK [t_2] 813\n")
	p.End()
	c.want("0 OMIS_CSR_ENABLED(4) [] c_1\n1 OMIS_OK []\n", "0 OMIS_CSR_TRIGGERED(10) [p_1] c_1\n1 OMIS_OK [] 2,[p_1,u_0]\n")
	b.want(": proc_get_info([p_1],0) thread_get_info([t_1],0) proc_get_info([],0)",
		"0 OMIS_OK []\n1 OMIS_UNKNOWN_OBJECT(24) [p_1] \"no such process token: p_1\"\n2 OMIS_UNKNOWN_OBJECT(24) [t_1] \"no such thread token: t_1\"\n3\n")
	b.node.Add(812, []string{"b"}, 812)
	b.want(`: proc_attach3([],812,"") thread_get_info([],0x80)`, "0 OMIS_OK []\n1 OMIS_OK [n_1] p_2\n2 OMIS_OK [t_3] 812\n")
}

// TestQueriesAtEnd: only lists that query the process itself have it held at its exit; where
// it cannot be held they are executed all the same, and their placement says so.
func TestQueriesAtEnd(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, []string{"a"}, 1)
	p.Info.MemorySize = 4096
	b.node.Add(2, []string{"b"}, 2)
	b.ask(`: proc_attach3([],1,"") proc_attach3([],2,"")`)
	unheld := b.listen("proc_has_terminated([p_1]) : print([$held]) proc_get_info([p_2],0)", omis.DontReturnEnDis)
	held := b.listen("proc_has_terminated([p_1]) : print([$held]) proc_get_info([$proc],0x4000) thread_get_info([t_1],0x80)", omis.DontReturnEnDis)
	b.ask(": csr_enable([])")
	b.runs("c_2", omis.Trap, "the process is held at its exit until the list is done")
	for _, w := range b.node.Planted() {
		if w.Hold && w.Proc.PID != 1 {
			t.Errorf("process %d is held", w.Proc.PID)
		}
	}
	p.End()
	held.want("0 OMIS_CSR_TRIGGERED(10) [p_1] c_2\n1 OMIS_OK [] 1,[\"ptrace\"]\n2 OMIS_OK [p_1] 4096\n3 OMIS_OK [t_1] 1\n")
	unheld.want("0 OMIS_CSR_TRIGGERED(10) [p_1] c_1\n1 OMIS_OK [] 1,[\"\"]\n2 OMIS_OK [p_2]\n")
	b.want(": proc_get_info([p_1],0)", "0 OMIS_OK []\n1 OMIS_UNKNOWN_OBJECT(24) [p_1] \"no such process token: p_1\"\n")

	q := b.node.Add(3, []string{"c"}, 3)
	q.Unheld = omis.Errorf(omis.NoPermission, "traced by gdb (pid 9)")
	b.ask(`: proc_attach3([],3,"")`)
	refused := b.listen("proc_has_terminated([p_3]) : print([$held]) proc_get_info([],0)", omis.DontReturnEnDis)
	b.ask(": csr_enable([c_3])")
	b.runs("c_3", omis.Trap, "because it cannot be held at its exit: traced by gdb (pid 9)")
	q.End()
	refused.want("0 OMIS_CSR_TRIGGERED(10) [p_3] c_3\n1 OMIS_OK [] 1,[\"\"]\n2 OMIS_OK [p_2,p_3]\n")
}

func TestAttachingChangesWhatIsMonitored(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, []string{"a"}, 1)
	q := b.node.Add(2, []string{"b"}, 2)
	q.Unmapped = []uint64{0x20}
	c := b.listen("thread_reached_addr([],0x10) : print([])", 0)
	d := b.listen("thread_reached_addr([],0x20) : print([])", omis.DontReturnEnDis)
	b.ask(": csr_enable([])")
	b.ask(`: proc_attach3([],1,"") proc_attach3([],2,"")`)
	b.ask(": proc_detach([p_1])")
	c.want("0 OMIS_CSR_ENABLED(4) [] c_1\n1 OMIS_OK []\n",
		"0 OMIS_CSR_ENABLED(4) [] c_1\n1 OMIS_OK [p_1]\n",
		"0 OMIS_CSR_ENABLED(4) [] c_1\n1 OMIS_OK [p_2]\n",
		"0 OMIS_CSR_DISABLED(6) [] c_1\n1 OMIS_OK [p_1]\n")
	d.want("0 OMIS_CSR_ENABLED(4) [] c_2\n1 OMIS_PARAMETER_ERROR(28) [p_2] \"cannot set a breakpoint at 0x20: nothing is mapped there\"\n")
	if p.Watches() != 0 || q.Watches() != 1 {
		t.Errorf("%d and %d watches, want 0 and 1", p.Watches(), q.Watches())
	}
}

func TestEnableOfPart(t *testing.T) {
	b := start(t)
	b.node.Add(1, []string{"a"}, 1)
	b.node.Add(2, []string{"b"}, 2).Unmapped = []uint64{0x20, 0x30}
	b.ask(`: proc_attach3([],1,"") proc_attach3([],2,"")`)
	b.ask("thread_reached_addr([],0x20) : print([])")
	b.ask("thread_reached_addr([p_2],0x30) : print([])")
	b.want(": csr_enable([])", `0 OMIS_OK []
1 OMIS_PARAMETER_ERROR|OMIS_FATAL(29) [c_1] "enabled for 1 of 2 processes; for p_2: cannot set a breakpoint at 0x20: nothing is mapped there"
1 OMIS_PARAMETER_ERROR(28) [c_2] "cannot set a breakpoint at 0x30: nothing is mapped there"
`)
}

// TestDetachedProcess checks that a process keeps its token until it ends, even if no tool is attached to it.
func TestDetachedProcess(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, nil, 1)
	b.node.Add(2, nil, 2)
	b.want(`: proc_attach3([],1,"") proc_detach([p_1]) proc_attach3([],1,"") proc_detach([p_1])`,
		"0 OMIS_OK []\n1 OMIS_OK [n_1] p_1\n2 OMIS_OK []\n3 OMIS_OK [n_1] p_1\n4 OMIS_OK []\n")
	p.End()
	b.want(": proc_attach([p_1])", "0 OMIS_OK []\n1 OMIS_UNKNOWN_OBJECT(24) [p_1] \"there is no process 1\"\n")
	b.want(`: proc_attach3([],2,"") proc_attach([p_1])`,
		"0 OMIS_OK []\n1 OMIS_OK [n_1] p_2\n2 OMIS_UNKNOWN_OBJECT(24) [p_1] \"no such process token: p_1\"\n")
}

// listener collects the replies of a request.
type listener struct {
	*bench
	replies chan omis.Reply
	first   string
}

func (b *bench) listen(request string, flags omis.Flags) *listener {
	b.Helper()
	l := &listener{bench: b, replies: make(chan omis.Reply, 100)}
	r, err := b.tool.Request(context.Background(), request, func(r omis.Reply) { l.replies <- r }, flags|omis.WaitForFirstReply)
	if err != nil {
		b.Fatal(err)
	}
	if l.first = syntax.PrintReply(r); r.Err() != nil {
		b.Fatalf("%s: %v", request, r.Err())
	}
	return l
}

// want waits for replies and compares them.
func (l *listener) want(replies ...string) {
	l.Helper()
	for _, want := range replies {
		select {
		case r := <-l.replies:
			if got := syntax.PrintReply(r); got != want {
				l.Errorf("got reply\n%swant\n%s", got, want)
			}
		case <-time.After(30 * time.Second):
			l.Fatalf("no reply, want\n%s", want)
		}
	}
	l.quiet()
}

// quiet checks that there is no unread reply.
func (l *listener) quiet() {
	l.Helper()
	select {
	case r := <-l.replies:
		l.Errorf("unexpected reply\n%s", syntax.PrintReply(r))
	default:
	}
}

// TestAttachByToken checks that proc_attach accepts tokens of processes outside the scope, and converts
// other tokens like every service.
func TestAttachByToken(t *testing.T) {
	b := start(t)
	b.node.Add(1, []string{"a"}, 11)
	b.ask(`: proc_attach3([],1,"")`)
	b.want(": proc_attach([t_1]) proc_attach([n_1]) node_attach([p_1]) proc_attach([]) proc_attach([t_9])",
		"0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK []\n3 OMIS_OK []\n4 OMIS_OK []\n5 OMIS_UNKNOWN_OBJECT(24) [t_9] \"no such thread token: t_9\"\n")
	b.ask(": proc_detach([p_1])")
	b.want(": proc_attach([t_1]) proc_attach([p_1]) proc_get_info([],0)",
		"0 OMIS_OK []\n1 OMIS_UNKNOWN_OBJECT(24) [t_1] \"t_1 is not attached to this tool\"\n2 OMIS_OK []\n3 OMIS_OK [p_1]\n")
}

// TestStoppedProcessIsLetGo checks that stopped threads continue when the last tool detaches from their
// process, and not before.
func TestStoppedProcessIsLetGo(t *testing.T) {
	for _, leave := range []string{"proc_detach([])", "node_detach([])", ""} {
		b := start(t)
		p := b.node.Add(1, []string{"a"}, 11, 12)
		other := b.engine.Tool("other")
		b.ask(`: proc_attach3([],1,"")`)
		b.askBy(other, `: proc_attach3([],1,"")`)
		b.ask(": thread_stop([t_1])")
		for i, tool := range []*engine.Tool{b.tool, other} {
			if leave == "" {
				tool.Finalize()
			} else {
				b.askBy(tool, ": "+leave)
			}
			if got, want := len(p.StoppedThreads()), 1-i; got != want {
				t.Errorf("%d threads are stopped after %d tools have detached by %q, want %d", got, i+1, leave, want)
			}
		}
	}
}
