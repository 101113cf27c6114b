package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/engine/fake"
	"mirador/omis/ext/pa"
	"mirador/omis/service"
)

// TestManyTools checks that no request hangs and no watch remains while tools start, attach, enable,
// disable, detach and end, and the processes run.
func TestManyTools(t *testing.T) {
	b := start(t, pa.New())
	var procs []*fake.Process
	for pid := 1; pid <= 3; pid++ {
		procs = append(procs, b.node.Add(pid, nil, pid, pid+10))
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	for _, p := range procs {
		running.Go(func() { runs(p, stop) })
	}
	var tools sync.WaitGroup
	for i := range 4 {
		tools.Go(func() { uses(t, b.engine, i) })
	}
	tools.Wait()
	close(stop)
	running.Wait()
	for _, p := range procs {
		if n := p.Watches(); n != 0 {
			t.Errorf("%d watches are left in process %d", n, p.ID.PID)
		}
	}
}

// runs makes the threads of a process reach the breakpoints.
func runs(p *fake.Process, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
			p.Reach(p.ID.PID, 0x10, 64)
			p.Reach(p.ID.PID+10, 0x10, 64)
			p.Reach(p.ID.PID, 0x20, 64)
		}
	}
}

func uses(t *testing.T, e *engine.Engine, i int) {
	ctx := context.Background()
	for round := range 20 {
		tool := e.Tool(fmt.Sprintf("tool %d.%d", i, round))
		for _, request := range []string{
			`: proc_attach3([],1,"") proc_attach3([],2,"") proc_attach3([],3,"") pa_counter_create() pa_timer_create()`,
			"thread_reached_addr([],0x10) : pa_counter_add([],1) pa_timer_start([])",
			"thread_reached_addr([],0x20) : pa_timer_stop([])",
			"thread_reached_addr([],0x10) : { thread_get_info([$proc],0) }",
			"thread_reached_addr([],0x20) : csr_disable([$csr]) print([$time])",
			": csr_enable([])", ": proc_detach([p_2])", ": { pa_counter_read([]) }", ": proc_attach([p_2])", ": csr_disable([])", ": csr_enable([])",
		} {
			r, err := tool.Request(ctx, request, func(omis.Reply) {}, omis.WaitForFirstReply)
			if err != nil || r.Err() != nil {
				t.Errorf("%s: %v, %v", request, err, r.Err())
			}
		}
		time.Sleep(time.Millisecond)
		if err := tool.Finalize(); err != nil {
			t.Error(err)
		}
	}
}

// TestNestedLocks checks that a locked list that raises an event does not wait for itself.
func TestNestedLocks(t *testing.T) {
	b := start(t)
	b.ask(": user_event_create() user_event_create()")
	b.ask("user_event_has_been_raised(e_1) : { user_event_raise(e_2,[],0) }")
	c := b.listen("user_event_has_been_raised(e_2) : { print([1]) }", omis.DontReturnEnDis)
	b.ask("user_event_has_been_raised(e_1) : user_event_raise(e_2,[],0)")
	b.ask(": csr_enable([])")
	b.ask(": { user_event_raise(e_1,[],0) }")
	b.ask(": user_event_raise(e_1,[],0)")
	want := "0 OMIS_CSR_TRIGGERED(10) [e_2] c_2\n1 OMIS_OK [] 1,[1]\n"
	c.want(want, want, want, want)
}

// TestTableIsImplementation checks that an engine does not start if the table and the implementations
// differ.
func TestTableIsImplementation(t *testing.T) {
	for name, x := range map[string]*partial{
		"x_missing":   {services: []service.Service{{Name: "x_missing", Kind: service.Information, Support: service.Support{Level: service.Full}}}},
		"x_confused":  {services: []service.Service{{Name: "x_confused", Kind: service.Event, Support: service.Support{Level: service.Full}, Action: nothing}}},
		"x_forgotten": {services: []service.Service{{Name: "x_forgotten", Kind: service.Information, Support: service.Support{Level: service.Unsupported}, Action: nothing}}},
	} {
		if _, err := engine.New(fake.New("here"), nil, x); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// partial is an extension with an incomplete table or incomplete implementations.
type partial struct {
	extension
	services []service.Service
}

func (p *partial) Services() []service.Service { return p.services }

func nothing(*service.Call) ([]omis.Value, error) { return nil, nil }

// TestTwoNodesUnderLoad checks that no request hangs and no thread remains suspended under locked and
// ordinary lists on two nodes, events of both, and tools that suspend, detach and end.
func TestTwoNodesUnderLoad(t *testing.T) {
	w := startTwo(t)
	stop := make(chan struct{})
	var running sync.WaitGroup
	for _, p := range []*fake.Process{w.p, w.q} {
		running.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					p.Reach(11, 0x10, 64)
					p.Call(11, "send", omis.Int(0))
				}
			}
		})
	}
	var tools sync.WaitGroup
	for i := range 4 {
		tools.Go(func() { usesTwo(t, w.engine, i) })
	}
	tools.Wait()
	close(stop)
	running.Wait()
	for _, p := range []*fake.Process{w.p, w.q} {
		if n := p.Watches(); n != 0 || p.Threads[0].Suspended != 0 {
			t.Errorf("%d watches and %d suspensions are left", n, p.Threads[0].Suspended)
		}
	}
}

func usesTwo(t *testing.T, e *engine.Engine, i int) {
	ctx := context.Background()
	for round := range 20 {
		tool := e.Tool(fmt.Sprintf("tool %d.%d", i, round))
		for _, request := range []string{
			`: node_attach2("here") node_attach2("there") proc_attach3([],1,"") user_event_create()`,
			"thread_reached_addr([],0x10) : { thread_suspend([]) thread_get_info([],0) thread_resume([]) }",
			"thread_reached_addr([n_2],0x10) : user_event_raise([e_1],[],0)",
			`thread_has_started_lib_call([],"send") : thread_get_info([],1) ; thread_get_backtrace([$thread],0)`,
			"proc_has_been_stopped([]) : { proc_get_info([$proc],2) }",
			"proc_has_been_continued([]) : proc_get_info([],0)",
			": csr_enable([])", ": thread_stop([]) thread_continue([])", ": { thread_stop([n_1]) ; thread_continue([]) }",
			": thread_suspend([])", ": thread_detach([n_2])", ": { proc_set_priority([n_2],1) node_get_info([],1) }", ": proc_detach([n_1])",
		} {
			if _, err := tool.Request(ctx, request, func(omis.Reply) {}, omis.WaitForFirstReply); err != nil {
				t.Errorf("%s: %v", request, err)
			}
		}
		if err := tool.Finalize(); err != nil {
			t.Error(err)
		}
	}
}
