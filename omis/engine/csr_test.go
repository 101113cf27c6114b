package engine_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/ext/pa"
	"mirador/omis/node"
	"mirador/omis/service"
	"mirador/omis/syntax"
)

func TestResumeOfUserEvents(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, []string{"a"}, 11)
	b.ask(`: proc_attach3([],1,"") user_event_create()`)
	c := b.listen("user_event_has_been_raised(e_1) : print([$proc])", omis.DontReturnEnDis)
	b.ask("thread_reached_addr([],0x10) : user_event_raise(e_1,[],1)")
	b.ask(": csr_enable([]) user_event_raise(e_1,[],0)")
	p.Reach(11, 0x10, 0)
	c.want("0 OMIS_CSR_TRIGGERED(10) [e_1] c_1\n1 OMIS_OK [] 1,[u_0]\n", "0 OMIS_CSR_TRIGGERED(10) [e_1] c_1\n1 OMIS_OK [] 1,[u_0]\n")
	b.ask("user_event_has_been_raised(e_1) : user_event_raise(e_1,[],0)")
	b.ask(": csr_disable([c_1]) csr_enable([c_3]) user_event_raise(e_1,[],0)") // the list raises its own event
	b.want(": user_event_destroy(e_1) user_event_raise([e_1],[],0)",
		"0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_UNKNOWN_OBJECT(24) [e_1] \"no such user event token: e_1\"\n")
}

func TestDefinitionOrder(t *testing.T) {
	b := start(t, pa.New())
	p := b.node.Add(1, []string{"a"}, 11)
	b.ask(`: proc_attach3([],1,"") pa_counter_create()`)
	var mu sync.Mutex
	var order []string
	note := func(r omis.Reply) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, string(r[0][0].Values[0].Token()))
	}
	for _, action := range []string{"print([])", "thread_get_info([],0)", "pa_counter_add([],1)", "print([])"} {
		if _, err := b.tool.Request(context.Background(), "thread_reached_addr([],0x10) : "+action, note, omis.WaitForFirstReply|omis.DontReturnEnDis); err != nil {
			t.Fatal(err)
		}
	}
	b.ask(": csr_enable([c_4,c_2]) csr_enable([c_3,c_1])")
	p.Reach(11, 0x10, 0)
	eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(order, " ") == "c_1 c_2 c_3 c_4"
	})
	b.want(": pa_counter_read([])", "0 OMIS_OK []\n1 OMIS_OK [pa_c_1] 1,[p_1,t_1,1]\n")
}

func TestThreadEvents(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, []string{"a"}, 11)
	b.ask(`: proc_attach3([],1,"")`)
	c := b.listen("thread_creates_thread([t_1]) : print([$thread,$new_thread])", omis.DontReturnEnDis)
	d := b.listen("thread_has_terminated([]) : print([$thread])", omis.DontReturnEnDis)
	b.ask(": csr_enable([])")
	p.Spawn(11, 12)
	p.Spawn(12, 13)
	p.EndThread(12)
	c.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_1\n1 OMIS_OK [] 2,[t_1,t_2]\n")
	d.want("0 OMIS_CSR_TRIGGERED(10) [t_2] c_2\n1 OMIS_OK [] 1,[t_2]\n")
	b.want(": thread_get_info([],0)", "0 OMIS_OK []\n1 OMIS_OK [t_1,t_3]\n")
}

// TestNewProcess checks that the event of a new process precedes the event of its first thread, and that
// events of the process are detected as soon as the list of the former has attached it (OMIS 8.1.3).
func TestNewProcess(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, []string{"a"}, 11)
	b.ask(`: proc_attach3([],1,"")`)
	c := b.listen("thread_creates_proc([]) : proc_attach([$new_proc]) print([$thread,$new_proc])", omis.DontReturnEnDis)
	d := b.listen("thread_creates_thread([]) : print([$proc,$thread,$new_thread])", omis.DontReturnEnDis)
	f := b.listen("thread_creates_thread([]) : thread_get_info([$new_thread],1)", omis.DontReturnEnDis)
	h := b.listen("thread_reached_addr([],0x10) : print([$proc])", omis.DontReturnEnDis)
	b.ask(": csr_enable([])")
	child := p.Fork(11, 2)
	c.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_1\n1 OMIS_OK []\n2 OMIS_OK [] 2,[t_1,p_2]\n")
	d.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_2\n1 OMIS_OK [] 3,[p_1,t_1,t_2]\n")
	f.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_3\n1 OMIS_OK [t_2] p_2\n")
	child.Reach(2, 0x10, 0)
	h.want("0 OMIS_CSR_TRIGGERED(10) [t_2] c_4\n1 OMIS_OK [] 1,[p_2]\n")
	p.Spawn(11, 12)
	d.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_2\n1 OMIS_OK [] 3,[p_1,t_1,t_3]\n")
}

func TestFlags(t *testing.T) {
	b := start(t)
	replies := make(chan string, 10)
	receive := func(r omis.Reply) { replies <- syntax.PrintReply(r) }
	send := func(request string, flags omis.Flags) {
		t.Helper()
		if r, err := b.tool.Request(context.Background(), request, receive, flags); r != nil || err != nil {
			t.Fatalf("%s: %v, %v", request, r, err)
		}
	}
	send(": user_event_create()", omis.BufferRequest)
	send(": csr_enable([])", omis.DontReturnOK)
	send(": print([1])", omis.DontReturnOK|omis.BufferReplies)
	if first, second := <-replies, <-replies; !strings.Contains(first, "e_1") || !strings.Contains(second, "1,[1]") {
		t.Errorf("replies %s and %s", first, second)
	}
	debug := make(chan omis.Reply, 1)
	b.tool.HandleErrors(func(r omis.Reply) { debug <- r })
	send(": version()", omis.Debug)
	if r := <-debug; r[0][0].Status != omis.OK || r[0][0].Values[0].Str != ": version()" {
		t.Errorf("debugging output %v", r)
	}
	<-replies
}

func TestErrorsBeforeExecution(t *testing.T) {
	b := startPlain(t)
	b.want(": proc_getinfo([],0) message_create() print([$proc]) thread_stop([c_1]) version(1)", `0 OMIS_UNKNOWN_SERVICE(18) [] "position 2: there is no service proc_getinfo (did you mean proc_get_info?)"
0 OMIS_UNSUPPORTED_SERVICE(20) [] "position 21: message_create is not supported: no message-passing platform provides queues"
0 OMIS_UNKNOWN_ECP(22) [] "position 45: $proc has no value here: only the actions of an event have context parameters"
0 OMIS_TYPE_MISMATCH(26) [] "position 66: thread_list of thread_stop is a token of class t_, not c_1"
0 OMIS_PARAMETER_ERROR(28) [] "position 72: version takes 0 parameters (none), not 1"
`)
	b.want("thread_reached_addr([p_1],1) : print([])", "0 OMIS_CSR_DEFINED(2) []\n1 OMIS_UNKNOWN_OBJECT(24) [p_1] \"no such process token: p_1\"\n")
	b.want(": f(", "0 OMIS_SYNTAX_ERROR(16) [] \"position 4: expected a value, found the end\"\n")
	b.want("proc_has_terminated([]) : print([$par1])", "0 OMIS_UNKNOWN_ECP(22) [] \"position 33: proc_has_terminated has no event context parameter $par1\"\n")
}

// TestAllErrorsAtOnce checks that one reply has the syntax errors and the errors of the table, by
// position, without errors that follow from others.
func TestAllErrorsAtOnce(t *testing.T) {
	b := start(t)
	b.want(": prnt([1]) print([1,,2]) thread_stop([\"x\"]) foo(", `0 OMIS_UNKNOWN_SERVICE(18) [] "position 2: there is no service prnt (did you mean print?)"
0 OMIS_SYNTAX_ERROR(16) [] "position 21: expected a value, found ','"
0 OMIS_TYPE_MISMATCH(26) [] "position 39: thread_list of thread_stop is of type token, not a string"
0 OMIS_SYNTAX_ERROR(16) [] "position 49: expected a value, found the end"
`)
	b.want("thread_reachd_addr([],1) : print([$proc]) version(1)", `0 OMIS_UNKNOWN_SERVICE(18) [] "position 0: there is no service thread_reachd_addr (did you mean thread_reached_addr?)"
0 OMIS_PARAMETER_ERROR(28) [] "position 42: version takes 0 parameters (none), not 1"
`)
	b.want("thread_reached_addr([],) : print([$proc])", "0 OMIS_SYNTAX_ERROR(16) [] \"position 23: expected a value, found ')'\"\n")
	if n := strings.Count(b.ask(":"+strings.Repeat(" f()", 1000)), "\n"); n != 100 {
		t.Errorf("%d errors are reported of a request with 1000, want 100", n)
	}
}

// TestSlowTool checks that the owner of a process does not wait for a slow tool.
func TestSlowTool(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, []string{"a"}, 11)
	b.ask(`: proc_attach3([],1,"")`)
	block := make(chan struct{})
	var got, lost atomic.Int64
	_, err := b.tool.Request(context.Background(), "thread_reached_addr([],0x10) : print([])", func(r omis.Reply) {
		<-block
		if r[0][0].Status == omis.NoMemory {
			lost.Add(1)
		}
		got.Add(1)
	}, omis.WaitForFirstReply|omis.DontReturnEnDis)
	if err != nil {
		t.Fatal(err)
	}
	b.ask(": csr_enable([])")
	const hits = 10000
	for range hits {
		p.Reach(11, 0x10, 0)
	}
	close(block)
	eventually(t, func() bool { return lost.Load() == 1 })
	if got.Load() >= hits {
		t.Errorf("%d replies for %d hits, although the tool was slow", got.Load(), hits)
	}
}

// TestThreadIsHeld checks that the thread is held until the end of all lists.
func TestThreadIsHeld(t *testing.T) {
	slow := &extension{block: make(chan struct{})}
	b := start(t, slow)
	p := b.node.Add(1, []string{"a"}, 11)
	b.ask(`: proc_attach3([],1,"")`)
	b.ask("thread_reached_addr([],0x10) : x_wait()")
	b.ask(": csr_enable([])")
	released := p.Hit(node.EventReachedAddr, node.Hit{TID: 11, Addr: 0x10})
	select {
	case <-released:
		t.Error("the thread continued before the list was done")
	case <-time.After(20 * time.Millisecond):
	}
	close(slow.block)
	<-released
}

// TestLockedList checks that lists wait for a locked list, also local lists.
func TestLockedList(t *testing.T) {
	slow := &extension{block: make(chan struct{}), entered: make(chan struct{}, 1)}
	b := start(t, slow, pa.New())
	p := b.node.Add(1, []string{"a"}, 11)
	b.ask(`: proc_attach3([],1,"") pa_counter_create()`)
	b.ask("thread_reached_addr([],0x10) : pa_counter_add([],1)")
	b.ask(": csr_enable([])")
	go b.tool.Request(context.Background(), ": { x_wait() }", nil, 0)
	<-slow.entered
	released := p.Hit(node.EventReachedAddr, node.Hit{TID: 11, Addr: 0x10})
	select {
	case <-released:
		t.Error("a list was executed during a locked list")
	case <-time.After(20 * time.Millisecond):
	}
	close(slow.block)
	<-released
	b.want(": pa_counter_read([])", "0 OMIS_OK []\n1 OMIS_OK [pa_c_1] 1,[p_1,t_1,1]\n")
}

func TestExtensionUsesServices(t *testing.T) {
	b := start(t, &extension{})
	b.want(": x_twice()", "0 OMIS_OK []\n1 OMIS_OK [] 2,[1,2]\n")
	b.want(": { x_twice() }", "0 OMIS_OK []\n1 OMIS_OK [] 2,[1,2]\n")
	b.want(": x_panic() version()", "0 OMIS_OK []\n1 OMIS_INTERNAL_ERROR|OMIS_FATAL(37) [] \"x_panic failed inside the monitor: oops\"\n2 OMIS_OK [] 2,0,\"Mirador\",0,1\n")
	b.want(": extensions()", "0 OMIS_OK []\n1 OMIS_OK [] 1,[\"x\"]\n")
	b.want(`: services("x") services("y")`, "0 OMIS_OK []\n1 OMIS_OK [] 3,[\"x_wait\",\"x_twice\",\"x_panic\"],0,[]\n2 OMIS_PARAMETER_ERROR(28) [] \"there is no extension \\\"y\\\"\"\n")
}

func TestExplain(t *testing.T) {
	b := start(t, pa.New())
	b.node.Add(1, []string{"a"}, 11)
	b.ask(`: proc_attach3([],1,"") pa_counter_create()`)
	for request, want := range map[string]string{
		"thread_reached_addr([],16) : pa_counter_add([pa_c_1],1)": "trap, in the monitor, on a thread that serves the process",
		"thread_reached_addr([],16) : csr_disable([$csr])":        "csr_disable needs more than the event itself",
		"thread_reached_addr([],16) : { print([]) }":              "a locked list",
		"pa_interval_elapsed(10) : print([])":                     "monitor",
		": print([])":                                             "request",
	} {
		x, err := b.explain(request)
		if err != nil || !strings.Contains(x.Placement.String(), want) {
			t.Errorf("%s: %v, %v; want %s", request, x.Placement, err, want)
		}
		if strings.HasPrefix(request, "thread") && (len(x.Points) != 1 || x.Points[0].Addr != 16 || x.Points[0].Proc != "p_1") {
			t.Errorf("%s: points %v", request, x.Points)
		}
	}
	if n := len(b.node.Planted()); n != 1 {
		t.Errorf("Explain set %d watches", n-1)
	}
	b.ask("thread_reached_addr([],16) : print([])")
	if x, err := b.tool.State("c_1"); err != nil || x.Enabled {
		t.Errorf("state %+v, %v", x, err)
	}
}

// extension is a small extension for tests.
type extension struct {
	block   chan struct{}
	entered chan struct{}
}

func (*extension) Prefix() string           { return "x" }
func (*extension) Classes() []service.Class { return nil }

func (x *extension) Services() []service.Service {
	list := []service.Service{{Name: "x_wait", Action: x.wait}, {Name: "x_twice", Action: askTwice}, {Name: "x_panic", Action: func(*service.Call) ([]omis.Value, error) { panic("oops") }}}
	for i := range list {
		s := &list[i]
		s.Kind, s.Need, s.Role, s.Result = service.Information, service.Optional, service.Read, "any*"
		s.Support, s.Doc = service.Support{Level: service.Full}, "for tests"
	}
	return list
}

func (x *extension) wait(*service.Call) ([]omis.Value, error) {
	if x.entered != nil {
		x.entered <- struct{}{}
	}
	<-x.block
	return nil, nil
}

func askTwice(c *service.Call) ([]omis.Value, error) {
	r, err := c.Scope.Request(context.Background(), ": print([1,2])", nil)
	if err != nil {
		return nil, err
	}
	return r[1][0].Values, r.Err()
}

func eventually(t testing.TB, ok func() bool) {
	t.Helper()
	for range 3000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the condition is not true after 30 s")
}
