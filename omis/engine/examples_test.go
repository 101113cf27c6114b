package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"mirador/omis"
	"mirador/omis/engine/fake"
	"mirador/omis/ext/pa"
	"mirador/omis/node"
)

// TestPerformanceAnalysisExample executes the example of OMIS 5.3.1, with the timers and counters of the
// extension pa.
func TestPerformanceAnalysisExample(t *testing.T) {
	b := start(t, pa.New())
	task, other := b.node.Add(4178, nil, 11), b.node.Add(4179, nil, 21)
	b.want(`: proc_attach3([],4178,"") proc_attach3([],4179,"") pa_timer_create() pa_counter_create()`,
		"0 OMIS_OK []\n1 OMIS_OK [n_1] p_1\n2 OMIS_OK [n_1] p_2\n3 OMIS_OK [] pa_t_1\n4 OMIS_OK [] pa_c_1\n")
	b.listen(`thread_has_started_lib_call([p_1], "pvm_send") :
	          pa_timer_start([pa_t_1])
	          pa_counter_add([pa_c_1], $par5)`, omis.DontReturnOK|omis.DontReturnEnDis)
	b.listen(`thread_has_ended_lib_call([p_1], "pvm_send") :
	          pa_timer_stop([pa_t_1])`, omis.DontReturnOK|omis.DontReturnEnDis)
	entered := b.listen(`thread_has_started_lib_call([], "pvm_barrier") :
	          print(["pvm_barrier entered", $node, $proc, $time])`, omis.DontReturnEnDis)
	left := b.listen(`thread_has_ended_lib_call([], "pvm_barrier") :
	          print(["pvm_barrier left", $node, $proc, $time])`, omis.DontReturnEnDis)
	b.want(": csr_enable([c_1, c_2, c_3, c_4])", "0 OMIS_OK []\n1 OMIS_OK []\n")

	n := omis.Int
	task.Call(11, "pvm_send", n(0), n(1), n(2), n(3), n(4), n(100))
	task.Call(11, "pvm_send", n(0), n(1), n(2), n(3), n(4), n(28))
	other.Call(21, "pvm_send", n(0), n(1), n(2), n(3), n(4), n(1000))
	task.Call(11, "pvm_barrier", n(0))
	other.Call(21, "pvm_barrier", n(0))

	r := b.reply(": pa_counter_read([pa_c_1]) pa_timer_read([pa_t_1])")
	if rows := r[1][0].Values[1].List; len(rows) != 3 || rows[2].N != 128 {
		t.Errorf("the counter has %v, want 128 bytes", rows)
	}
	if rows := r[2][0].Values[1].List; len(rows) != 9 || rows[2].N != 2 || rows[8].N != 0 {
		t.Errorf("the timer has %v, want 2 calls", rows)
	}
	for _, l := range []struct {
		*listener
		word string
	}{{entered, "entered"}, {left, "left"}} {
		for _, p := range []omis.Token{"p_1", "p_2"} {
			v := (<-l.replies)[1][0].Values[1].List
			if v[0].Str != "pvm_barrier "+l.word || v[1].Token() != "n_1" || v[2].Token() != p || v[3].Float <= 0 {
				t.Errorf("%s: %v", l.word, v)
			}
		}
	}
}

// target is a process with its tokens.
type target struct {
	*fake.Process
	proc, thread omis.Token
}

// debugged returns the two processes of the examples in OMIS 5.3.2 and 5.6.
func debugged(b *bench) (p1123, p1234 target) {
	b.Helper()
	p1123 = target{b.node.Add(1123, nil, 11), "p_1", "t_1"}
	p1234 = target{b.node.Add(1234, nil, 21), "p_2", "t_2"}
	for _, p := range []target{p1123, p1234} {
		p.Threads[0].Frames = []node.Frame{{PC: 0xfe08, FP: 1}, {PC: 0x10, FP: 2}}
		p.Threads[0].Ints[3] = uint64(p.ID.PID)
	}
	b.ask(`: proc_attach3([],1123,"") proc_attach3([],1234,"") thread_get_info([],0)`)
	return p1123, p1234
}

// replied returns the reply of the examples for a process.
func (p target) replied(at, csr string) string {
	regs := make([]string, 32)
	for i := range regs {
		regs[i] = "0"
	}
	regs[3] = fmt.Sprint(p.ID.PID)
	return fmt.Sprintf("0 OMIS_CSR_TRIGGERED(10) [%s] %s\n1 OMIS_OK [] 1,[%s]\n2 OMIS_OK [%s] 2,[65032,1,16,2]\n3 OMIS_OK [%s] [%s]\n",
		at, csr, p.proc, p.thread, p.thread, strings.Join(regs, ","))
}

// TestDebuggingExample executes the example of OMIS 5.3.2.
func TestDebuggingExample(t *testing.T) {
	b := start(t)
	p1123, p1234 := debugged(b)
	b.want(": user_event_create()", "0 OMIS_OK []\n1 OMIS_OK [] e_1\n")
	b.ask(`thread_has_started_lib_call([p_1], "MPI_Send") : user_event_raise([e_1], [], 0)`)
	b.ask(`thread_reached_addr([p_2], 0xfe08) : user_event_raise([e_1], [], 0)`)
	c := b.listen(`user_event_has_been_raised([e_1]) :
	               print([$proc])
	               thread_get_backtrace([$proc], 0)
	               thread_read_int_regs([$proc], 0, 32)`, omis.DontReturnEnDis)
	b.want(": csr_enable([c_3]) ; csr_enable([c_1, c_2])", "0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK []\n")
	p1123.Call(11, "MPI_Send", omis.Int(0), omis.Int(1))
	p1234.Call(21, "MPI_Send", omis.Int(0), omis.Int(1))
	p1234.Reach(21, 0xfe08, 0)
	c.want(p1123.replied("e_1", "c_3"), p1234.replied("e_1", "c_3"))
	if len(p1234.StoppedThreads()) != 0 {
		t.Error("the process is stopped")
	}
}

// TestDebuggingExampleWithStop adds thread_stop($proc) to the example, as OMIS 5.3.2 suggests.
func TestDebuggingExampleWithStop(t *testing.T) {
	b := start(t)
	_, p1234 := debugged(b)
	b.ask(": user_event_create()")
	b.ask("thread_reached_addr([p_2], 0xfe08) : user_event_raise([e_1], [], 0)")
	b.ask("user_event_has_been_raised([e_1]) : print([$proc]) thread_stop($proc)")
	b.ask(": csr_enable([])")
	p1234.Reach(21, 0xfe08, 0)
	if len(p1234.StoppedThreads()) != 1 {
		t.Error("the process is not stopped")
	}
}

// TestHappenedAfterExample executes the "happened after" of OMIS 5.6.
func TestHappenedAfterExample(t *testing.T) {
	b := start(t)
	p1123, p1234 := debugged(b)
	c := b.listen(`thread_reached_addr([p_2],0xfe08) :
	               print([$proc])
	               thread_get_backtrace([$proc],0)
	               thread_read_int_regs([$proc],0,32)`, omis.DontReturnEnDis)
	b.ask(`thread_has_started_lib_call([p_1],"MPI_Send") : csr_enable([c_1])`)
	b.want(": csr_enable([c_2])", "0 OMIS_OK []\n1 OMIS_OK []\n")
	p1234.Reach(21, 0xfe08, 0)
	c.quiet()
	p1123.Call(11, "MPI_Send", omis.Int(0))
	p1234.Reach(21, 0xfe08, 0)
	c.want(p1234.replied("t_2", "c_1"))
}
