package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/engine/fake"
	"mirador/omis/ext/pa"
	"mirador/omis/node"
	"mirador/omis/program"
)

func TestCallEvents(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, nil, 11, 12)
	b.ask(`: proc_attach3([],1,"") thread_get_info([],0)`)
	c := b.listen(`thread_has_started_lib_call([t_1],"send") : print([$par1,$par2])`, omis.DontReturnEnDis)
	d := b.listen(`thread_has_ended_lib_call([],"send") : print([$thread,$par1])`, omis.DontReturnEnDis)
	s := b.listen(`thread_has_ended_sys_call([],"") : print([$par1])`, omis.DontReturnEnDis)
	b.ask(": csr_enable([])")
	p.Call(12, "send", omis.Int(0), omis.Int(1), omis.String("x"))
	p.Call(11, "recv", omis.Int(0))
	p.Call(11, "send", omis.Int(-1), omis.Int(2), omis.String("y"))
	p.SysCall(11, "write", omis.Int(5), omis.Int(1))
	c.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_1\n1 OMIS_OK [] 2,[2,\"y\"]\n")
	d.want("0 OMIS_CSR_TRIGGERED(10) [t_2] c_2\n1 OMIS_OK [] 2,[t_2,0]\n", "0 OMIS_CSR_TRIGGERED(10) [t_1] c_2\n1 OMIS_OK [] 2,[t_1,-1]\n")
	s.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_3\n1 OMIS_OK [] 1,[5]\n")
}

func TestSignalEvents(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, nil, 11)
	b.ask(`: proc_attach3([],1,"")`)
	c := b.listen("thread_received_signal([],[10,12,10]) : print([$sig])", omis.DontReturnEnDis)
	d := b.listen("thread_received_signal([],[]) : print([$sig])", omis.DontReturnEnDis)
	b.ask(": csr_enable([])")
	for _, sig := range []int{10, 11} {
		<-p.Hit(node.EventSignal, node.Hit{TID: 11, Signal: sig})
	}
	c.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_1\n1 OMIS_OK [] 1,[10]\n")
	d.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_2\n1 OMIS_OK [] 1,[10]\n", "0 OMIS_CSR_TRIGGERED(10) [t_1] c_2\n1 OMIS_OK [] 1,[11]\n")
	if w := b.node.Planted(); len(w[1].Signals) != 2 {
		t.Errorf("the node watches the signals %v", w[1].Signals)
	}
}

// TestReachedUnderCondition checks that requests with a condition, its opposite and none share an address.
func TestReachedUnderCondition(t *testing.T) {
	b := start(t, pa.New())
	p := b.node.Add(1, nil, 11)
	b.ask(`: proc_attach3([],1,"") pa_counter_create() pa_counter_create() pa_counter_create()`)
	const equal = 4
	b.listen(fmt.Sprintf("pa_thread_reached_addr_if([],0x10,%d) : pa_counter_add([pa_c_1],1)", equal), omis.DontReturnEnDis)
	b.listen(fmt.Sprintf("pa_thread_reached_addr_if([],0x10,%d) : pa_counter_add([pa_c_2],1)", equal^1), omis.DontReturnEnDis)
	b.listen("thread_reached_addr([],0x10) : pa_counter_add([pa_c_3],1)", omis.DontReturnEnDis)
	b.ask(": csr_enable([])")
	for _, flags := range []uint64{node.FlagZero, node.FlagZero | node.FlagCarry, node.FlagCarry} {
		<-p.Hit(node.EventReachedAddr, node.Hit{TID: 11, Addr: 0x10, Flags: flags, Held: node.HeldByPtrace})
	}
	for i, want := range []int64{2, 1, 3} {
		if got := b.ask(fmt.Sprintf(": pa_counter_read([pa_c_%d])", i+1)); !strings.Contains(got, fmt.Sprintf("t_1,%d]", want)) {
			t.Errorf("counter %d is %s, want %d", i+1, got, want)
		}
	}
	if got := b.ask("pa_thread_reached_addr_if([],0x10,16) : pa_counter_add([pa_c_1],1)"); !strings.Contains(got, "the number of a condition is at most 15") {
		t.Errorf("a condition that does not exist: %s", got)
	}
}

// TestPlainThreadEvents checks the other events of threads, and their variants for processes.
func TestPlainThreadEvents(t *testing.T) {
	for event, services := range map[node.EventKind][]string{
		node.EventStepped:         {"thread_executed_insn"},
		node.EventSteppedOver:     {"thread_executed_insn_call"},
		node.EventScheduled:       {"thread_has_been_scheduled", "proc_has_been_scheduled"},
		node.EventDescheduled:     {"thread_has_been_descheduled", "proc_has_been_descheduled"},
		node.EventBlocked:         {"thread_has_blocked"},
		node.EventBlockedOnIO:     {"pa_thread_has_blocked_on_io"}, // a service of the extension pa
		node.EventUnblocked:       {"thread_has_been_unblocked"},
		node.EventThreadStopped:   {"thread_has_been_stopped"},
		node.EventThreadContinued: {"thread_has_been_continued"},
	} {
		b := start(t, pa.New())
		p := b.node.Add(1, nil, 11, 12)
		b.ask(`: proc_attach3([],1,"") thread_get_info([],0)`)
		for _, s := range services {
			c := b.listen(s+"([t_2]) : print([$proc,$thread])", omis.DontReturnEnDis)
			b.ask(": csr_enable([])")
			<-p.Hit(event, node.Hit{TID: 12})
			place := "t_2"
			if strings.HasPrefix(s, "proc") {
				place = "p_1"
			}
			r := <-c.replies
			if at := r[0][0].Objects[0]; string(at) != place || r[1][0].Values[1].List[1].Token() != "t_2" {
				t.Errorf("%s: %v, want the object %s", s, r, place)
			}
			b.ask(": csr_delete([])")
		}
		if p.Watches() != 0 {
			t.Errorf("%v: watches are left", services)
		}
	}
}

// TestSteppedThreads checks that only the named threads are stepped.
func TestSteppedThreads(t *testing.T) {
	b := start(t)
	b.node.Add(1, nil, 11, 12)
	b.ask(`: proc_attach3([],1,"") thread_get_info([],0)`)
	b.ask("thread_executed_insn([t_2]) : print([])")
	b.ask(": csr_enable([])")
	if w := b.node.Planted(); len(w[1].Threads) != 1 || w[1].Threads[0] != 12 {
		t.Errorf("the node steps the threads %v", w[1].Threads)
	}
}

func TestStopEvents(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, nil, 11, 12)
	b.ask(`: proc_attach3([],1,"") thread_get_info([],0)`)
	one := b.listen("thread_has_been_stopped([]) : print([$thread])", omis.DontReturnEnDis)
	all := b.listen("proc_has_been_stopped([]) : print([$proc,$thread])", omis.DontReturnEnDis)
	on := b.listen("proc_has_been_continued([]) : thread_get_info([$proc],0x100)", omis.DontReturnEnDis)
	b.ask(": csr_enable([])")
	b.ask(": thread_stop([t_1]) thread_stop([t_1])")
	one.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_1\n1 OMIS_OK [] 1,[t_1]\n")
	all.quiet()
	b.ask(": thread_stop([p_1]) thread_stop([])")
	one.want("0 OMIS_CSR_TRIGGERED(10) [t_2] c_1\n1 OMIS_OK [] 1,[t_2]\n")
	all.want("0 OMIS_CSR_TRIGGERED(10) [p_1] c_2\n1 OMIS_OK [] 2,[p_1,u_0]\n")
	b.ask(": thread_continue([t_1])")
	on.quiet()
	b.ask(": thread_continue([t_2]) thread_continue([])")
	on.want("0 OMIS_CSR_TRIGGERED(10) [p_1] c_3\n1 OMIS_OK [t_1,t_2] 0\n")
	if p.Threads[0].Suspended+p.Threads[1].Suspended != 0 {
		t.Error("threads are still suspended")
	}
	b.ask(`: proc_create([],"/bin/a",[],[],[])`)
	b.ask(": thread_continue([p_2])")
	on.want("0 OMIS_CSR_TRIGGERED(10) [p_2] c_3\n1 OMIS_OK [t_3] 0\n")
}

// TestStopAndGo checks that two requests that undo each other's effect terminate.
func TestStopAndGo(t *testing.T) {
	b := start(t)
	b.node.Add(1, nil, 11)
	b.ask(`: proc_attach3([],1,"")`)
	b.ask("proc_has_been_stopped([]) : thread_continue([$proc])")
	b.ask("proc_has_been_continued([]) : thread_stop([$proc])")
	b.ask(": csr_enable([]) thread_stop([])")
}

func TestNodeEvents(t *testing.T) {
	here, there := fake.New("here"), fake.New("there")
	b := startOver(t, []program.Machine{here, there}, []*fake.Node{here, there})
	p := here.Add(1, nil, 11)
	b.ask(`: proc_attach3([],1,"")`)
	c := b.listen("thread_adds_node([]) : node_attach([$new_node]) node_get_info([],1)", omis.DontReturnEnDis)
	d := b.listen("thread_removes_node([]) : node_detach([$rem_node]) node_get_info([],1)", omis.DontReturnEnDis)
	b.ask(": csr_enable([])")
	<-p.Hit(node.EventNodeAdded, node.Hit{TID: 11, Peer: "there"})
	<-p.Hit(node.EventNodeRemoved, node.Hit{TID: 11, Peer: "there"})
	c.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_1\n1 OMIS_OK []\n2 OMIS_OK [n_1] \"here\"\n2 OMIS_OK [n_2] \"there\"\n")
	d.want("0 OMIS_CSR_TRIGGERED(10) [t_1] c_2\n1 OMIS_OK []\n2 OMIS_OK [n_1] \"here\"\n")
}

// TestUndetectable checks that a request for an event that the node cannot detect is refused when it is
// defined.
func TestUndetectable(t *testing.T) {
	n := fake.New("here")
	n.Blind = map[node.EventKind]error{node.EventScheduled: omis.Errorf(omis.UnsupportedService, "there is no tracepoint sched_switch")}
	b := startOver(t, []program.Machine{n}, []*fake.Node{n})
	want := "0 OMIS_UNSUPPORTED_SERVICE(20) [] \"position 0: proc_has_been_scheduled is not supported: there is no tracepoint sched_switch\"\n"
	b.want("proc_has_been_scheduled([]) : print([])", want)
	if _, err := engine.NewOver([]program.Machine{n, n}, nil); err == nil || !strings.Contains(err.Error(), "names of nodes must differ") {
		t.Errorf("two nodes with the same name: %v", err)
	}
}

func TestHeld(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, nil, 11)
	b.ask(`: proc_attach3([],1,"")`)
	c := b.listen("thread_reached_addr([],0x10) : print([$held,$held_for])", omis.DontReturnEnDis)
	d := b.listen("thread_reached_addr([],0x10) : thread_get_info([],0) print([$held,$held_for])", omis.DontReturnEnDis)
	b.ask(": csr_enable([])")
	<-p.Hit(node.EventReachedAddr, node.Hit{TID: 11, Addr: 0x10, Held: node.HeldByRendezvous})
	for _, r := range []omis.Reply{<-c.replies, <-d.replies} {
		v := r[len(r)-1][0].Values[1].List
		if v[0].Str != "rendezvous" || v[1].Float <= 0 || v[1].Float > 5 {
			t.Errorf("held %v", v)
		}
	}
}
