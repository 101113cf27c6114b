package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"mirador/examples/targets"
)

// TestPerformanceAnalysisLive executes the performance analysis of OMIS 5.3.1 on live processes.
// Calls of the C library replace those of PVM, and the timers and counters are those of the
// extension pa. The parameter with the size is the third one of send, whose type is given in
// examples/prototypes. The requests apply to all processes, so a process that is attached later is
// observed too.
func TestPerformanceAnalysisLive(t *testing.T) {
	const rounds = 20
	s := startServe(t, os.Geteuid(), "--prototypes", prototypes(t))
	task, other, late := exchange(t, rounds, 1), exchange(t, rounds, 1), exchange(t, rounds, 1)
	x := s.listen(t, "analysis")
	x.ask(t, fmt.Sprintf(`: proc_attach3([],%d,"") proc_attach3([],%d,"")`, task.PID, other.PID))
	timer, counter := x.ask(t, ": pa_timer_create()"), x.ask(t, ": pa_counter_create()")
	if !strings.HasSuffix(timer, " pa_t_1\n") || !strings.HasSuffix(counter, " pa_c_1\n") {
		t.Fatal(timer, counter)
	}
	tokens := []string{
		x.define(t, `thread_has_started_lib_call([p_1], "send") :
			pa_timer_start([pa_t_1])
			pa_counter_add([pa_c_1], $par3)`),
		x.define(t, `thread_has_ended_lib_call([p_1], "send") :
			pa_timer_stop([pa_t_1])`),
		x.define(t, `thread_has_started_lib_call([], "pthread_barrier_wait") :
			print(["pvm_barrier entered", $node, $proc, $time])`),
		x.define(t, `thread_has_ended_lib_call([], "pthread_barrier_wait") :
			print(["pvm_barrier left", $node, $proc, $time])`),
	}
	x.ask(t, ": csr_enable(["+strings.Join(tokens, ", ")+"])")
	x.ask(t, fmt.Sprintf(`: proc_attach3([],%d,"")`, late.PID))
	for _, p := range []*targets.Process{task, other, late} {
		p.Go(t)
	}
	bytes := 0
	for round := range rounds {
		bytes += 10 + round
	}
	for _, p := range []*targets.Process{task, other, late} {
		awaitOutput(t, p, fmt.Sprintf("done 1 calls %d bytes %d\n", rounds, bytes))
	}
	for _, word := range []string{"entered", "left"} {
		// Two threads of three processes meet.
		told := x.await(t, 3*2*rounds, `\["pvm_barrier `+word+`",n_1,(p_\d+),([0-9.e+]+)\]`)
		by := make(map[string]int)
		for _, m := range told {
			by[m[1]]++
		}
		if fmt.Sprint(by) != fmt.Sprintf("map[p_1:%[1]d p_2:%[1]d p_3:%[1]d]", 2*rounds) {
			t.Errorf("%s barriers: replies are about %v", word, by)
		}
	}
	if got := x.ask(t, ": pa_counter_read([pa_c_1])"); !strings.Contains(got, fmt.Sprintf(",%d]\n", bytes)) {
		t.Errorf("the counter says %s, sent are %d bytes", got, bytes)
	}
	// One row, of the only thread that sends; nothing is unfinished.
	if got := x.ask(t, ": pa_timer_read([pa_t_1])"); !strings.Contains(got, " 1,[p_1,t_") || !strings.Contains(got, fmt.Sprintf(",%d,", rounds)) || !strings.HasSuffix(got, ",0]\n") {
		t.Errorf("the timer says %s, there were %d calls", got, rounds)
	}
	end(t, task, other, late)
}

// prototypes returns the folder with the examples' prototypes.
func prototypes(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("../examples/prototypes")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// exchange starts a process that sends messages to itself.
func exchange(t *testing.T, rounds, phases int) *targets.Process {
	t.Helper()
	return targets.Start(t, "exchange", strconv.Itoa(rounds), strconv.Itoa(phases))
}

// awaitOutput waits for a line in a target's output.
func awaitOutput(t *testing.T, p *targets.Process, line string) {
	t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(p.Output(), line); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the target did not print %q but %q", line, p.Output())
		}
	}
}

// end waits for the end of targets that have finished their work.
func end(t *testing.T, all ...*targets.Process) {
	t.Helper()
	for _, p := range all {
		p.Go(t)
		if err := p.Wait(t); err != nil {
			t.Error(err)
		}
	}
}

// watched starts the two processes of the examples in OMIS 5.3.2 and 5.6.
func watched(t *testing.T, s *served, phases int) (x *tool, p1123, p1234 *targets.Process, address uint64) {
	t.Helper()
	p1123, p1234 = exchange(t, 3, phases), exchange(t, 3, phases)
	x = s.listen(t, "debugger")
	x.ask(t, fmt.Sprintf(`: proc_attach3([],%d,"") proc_attach3([],%d,"")`, p1123.PID, p1234.PID))
	return x, p1123, p1234, addressOf(t, p1234.PID, "/exchange", "arrived")
}

// triggered returns the pattern of a reply about a process: its token, and the backtraces and
// registers of its two threads.
func triggered(at, csr, proc string) string {
	return `0 OMIS_CSR_TRIGGERED\(10\) \[` + at + `\] ` + csr + `\n1 OMIS_OK \[\] 1,\[` + proc + `\]\n((?:2 OMIS_OK .*\n){2}(?:3 OMIS_OK \[t_\d+\] \[(?:\d+,){19}\d+\]\n){2})`
}

// checkPlaces checks for each reply that the stack of one thread begins at the event's address, and
// that the thread's program counter has this value.
func checkPlaces(t *testing.T, told [][]string, address uint64) {
	t.Helper()
	stack := regexp.MustCompile(fmt.Sprintf(`2 OMIS_OK \[(t_\d+)\] \d+,\[%d,`, address))
	for _, m := range told {
		at := stack.FindStringSubmatch(m[1])
		if at == nil {
			t.Errorf("no thread is at %d:\n%s", address, m[0])
			continue
		}
		counter := regexp.MustCompile(fmt.Sprintf(`3 OMIS_OK \[%s\] \[(?:\d+,){16}%d,`, at[1], address))
		if !counter.MatchString(m[1]) {
			t.Errorf("the program counter of %s is not %d:\n%s", at[1], address, m[0])
		}
	}
}

// TestDebuggingLive executes the debugging example of OMIS 5.3.2, and checks that
// thread_stop($proc) stops the process.
func TestDebuggingLive(t *testing.T) {
	x, p1123, p1234, address := watched(t, startServe(t, os.Geteuid()), 2)
	e := strings.TrimSpace(strings.TrimPrefix(x.ask(t, ": user_event_create()"), "0 OMIS_OK []\n1 OMIS_OK [] "))
	c1 := x.define(t, `thread_has_started_lib_call([p_1], "send") :
		user_event_raise([`+e+`], [], 0)`)
	c2 := x.define(t, fmt.Sprintf(`thread_reached_addr([p_2], %#x) :
		user_event_raise([%s], [], 0)`, address, e))
	const list = `print([$proc])
		thread_get_backtrace([$proc], 0)
		thread_read_int_regs([$proc], 0, 32)`
	c3 := x.define(t, "user_event_has_been_raised(["+e+"]) : "+list)
	x.ask(t, ": csr_enable(["+c3+"]) ; csr_enable(["+c1+", "+c2+"])")
	for _, p := range []*targets.Process{p1123, p1234} {
		p.Go(t)
		awaitOutput(t, p, "done 1 calls 3 ")
	}
	call := addressOf(t, p1123.PID, "/libc.so.6", "send")
	one := x.await(t, 3, triggered(e, c3, "p_1"))
	two := x.await(t, 3, triggered(e, c3, "p_2"))
	checkPlaces(t, one, call)
	checkPlaces(t, two, address)

	x.define(t, "user_event_has_been_raised(["+e+"]) : thread_stop($proc)")
	x.ask(t, ": csr_enable([])")
	p1234.Go(t)
	x.await(t, 4, triggered(e, c3, "p_2"))
	if strings.Contains(p1234.Output(), "done 2") {
		t.Error("the process is not stopped")
	}
	x.ask(t, ": csr_disable([]) thread_continue([])")
	awaitOutput(t, p1234, "done 2 calls 6 ")
	p1123.Go(t)
	awaitOutput(t, p1123, "done 2 calls 6 ")
	end(t, p1123, p1234)
}

// TestHappenedAfterLive executes the "happened after" example of OMIS 5.6.
func TestHappenedAfterLive(t *testing.T) {
	x, p1123, p1234, address := watched(t, startServe(t, os.Geteuid()), 2)
	c1 := x.define(t, fmt.Sprintf(`thread_reached_addr([p_2],%#x) :
		print([$proc])
		thread_get_backtrace([$proc],0)
		thread_read_int_regs([$proc],0,32)`, address))
	c2 := x.define(t, `thread_has_started_lib_call([p_1],"send") :
		csr_enable([`+c1+`])`)
	x.ask(t, ": csr_enable(["+c2+"])")
	p1234.Go(t)
	awaitOutput(t, p1234, "done 1 calls 3 ")
	p1123.Go(t)
	awaitOutput(t, p1123, "done 1 calls 3 ")
	if strings.Contains(x.out.String(), "1,[p_2]") {
		t.Error("the reply arrived before the second event")
	}
	p1234.Go(t)
	awaitOutput(t, p1234, "done 2 calls 6 ")
	told := x.await(t, 3, triggered(`t_\d+`, c1, "p_2"))
	checkPlaces(t, told, address)
	p1123.Go(t)
	awaitOutput(t, p1123, "done 2 calls 6 ")
	end(t, p1123, p1234)
}
