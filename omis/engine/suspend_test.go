package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mirador/omis/node"
)

// TestSuspendWhileThreadsAreCreated checks that a thread that is created while its process is being
// suspended is suspended too, and that later actions of the list resume it with the process.
func TestSuspendWhileThreadsAreCreated(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, nil, 11, 12)
	b.ask(`: proc_attach3([],1,"")`)
	next, before := 13, 0
	var suspended []int
	b.node.Script = func(method string) error {
		switch {
		case method == "Suspend" && before > 0:
			before--
			p.Spawn(11, next)
			next++
		case method == "Resume" && suspended == nil:
			for tid := 11; tid < next; tid++ {
				suspended = append(suspended, p.Suspended(tid))
			}
		}
		return nil
	}
	wantNone := func(request string) {
		t.Helper()
		for tid := 11; tid < next; tid++ {
			if n := p.Suspended(tid); n != 0 {
				t.Errorf("%s: thread %d is suspended %d times", request, tid, n)
			}
		}
	}
	for i, token := range []string{"p_1", "", "n_1"} {
		before, suspended = 2, nil
		request := fmt.Sprintf(": thread_suspend([%s]) thread_resume([%s])", token, token)
		b.want(request, "0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK []\n")
		if next != 15+2*i || slices.Contains(suspended, 0) {
			t.Errorf("%s: the suspend counts of %[3]d threads are %[2]v", request, suspended, next-11)
		}
		wantNone(request)
	}
	b.ask("thread_reached_addr([p_1],16) : thread_suspend([$proc]) thread_resume([$proc])")
	b.ask(": csr_enable([])")

	before = 2
	<-p.Hit(node.EventReachedAddr, node.Hit{TID: 11, Addr: 16})
	if next != 21 {
		t.Errorf("there are %d threads, want 10", next-11)
	}
	wantNone("an event's list")
	before = 1
	b.ask(": thread_suspend([p_1])")
	if err := b.tool.Finalize(); err != nil || next != 22 {
		t.Error(err, next)
	}
	wantNone("Finalize")
}

// TestSuspendWhileThreadsEnd checks that only a thread that ends while its process is being suspended has
// an error, and that threads that are created meanwhile are suspended.
func TestSuspendWhileThreadsEnd(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, nil, 11, 12)
	b.ask(`: proc_attach3([],1,"") thread_get_info([],0)`)
	calls := 0
	b.node.Script = func(method string) error {
		if method == "Suspend" {
			switch calls++; calls {
			case 1:
				p.EndThread(12)
				p.Spawn(11, 13)
				p.Spawn(11, 14)
			case 3:
				p.Spawn(11, 15)
				p.EndThread(14)
			}
		}
		return nil
	}
	got := b.ask(": thread_suspend([p_1])")
	if !strings.Contains(got, "1 OMIS_UNKNOWN_OBJECT") || !strings.Contains(got, "[t_2]") {
		t.Error(got)
	}
	for _, tid := range []int{11, 13, 15} {
		if n := p.Suspended(tid); n != 1 {
			t.Errorf("thread %d is suspended %d times", tid, n)
		}
	}
	b.ask(": thread_resume([p_1])")
	for _, tid := range []int{11, 13, 15} {
		if n := p.Suspended(tid); n != 0 {
			t.Errorf("thread %d is suspended %d times", tid, n)
		}
	}
}

// TestContinuedWhileThreadsEnd checks that the threads that are held for the lists of
// proc_has_been_continued continue although one of them ends meanwhile.
func TestContinuedWhileThreadsEnd(t *testing.T) {
	b := start(t)
	p := b.node.Add(1, nil, 11, 12)
	b.ask(`: proc_attach3([],1,"")`)
	b.ask("proc_has_been_continued([p_1]) : print([$proc])")
	b.ask(": csr_enable([]) thread_stop([p_1])")
	b.node.Script = func(method string) error {
		if method == "Continue" {
			p.EndThread(12)
		}
		return nil
	}
	b.want(": thread_continue([p_1])", "0 OMIS_OK []\n1 OMIS_OK []\n")
	if n := p.Suspended(11); n != 0 {
		t.Errorf("a thread is suspended %d times", n)
	}
}
