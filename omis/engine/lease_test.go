package engine_test

import (
	"slices"
	"testing"

	"mirador/omis"
)

// TestLetGo checks that LetGo continues and resumes the threads that the tool has stopped or suspended,
// except for those that another tool has stopped or suspended too.
func TestLetGo(t *testing.T) {
	b := start(t)
	first, second, third := b.node.Add(1, nil, 11, 12), b.node.Add(2, nil, 21), b.node.Add(3, nil, 31)
	other := b.engine.Tool("other")
	attach := `: proc_attach3([],1,"") proc_attach3([],2,"") proc_attach3([],3,"")`
	b.ask(attach)
	b.askBy(other, attach)
	for range 2 {
		b.ask(": thread_suspend([p_1])")
	}
	b.askBy(other, ": thread_suspend([t_2])")
	b.ask(": thread_stop([p_2,p_3])")
	b.askBy(other, ": thread_stop([p_3])")
	let := func(want ...omis.Token) {
		t.Helper()
		got, err := b.tool.LetGo()
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	}
	let("p_1", "p_2")
	if n := [2]int{first.Suspended(11), first.Suspended(12)}; n != [2]int{0, 1} {
		t.Errorf("the suspend counts are %v", n)
	}
	if len(second.StoppedThreads()) > 0 || len(third.StoppedThreads()) == 0 {
		t.Errorf("stopped are %v and %v", second.StoppedThreads(), third.StoppedThreads())
	}
	let()
	b.ask(": thread_stop([p_2]) thread_continue([p_2])")
	let()
	b.askBy(other, ": thread_stop([p_2])")
	let()
	b.askBy(other, ": proc_detach([p_3])")
	b.ask(": thread_stop([p_3])")
	let("p_3")
	if len(second.StoppedThreads()) == 0 || len(third.StoppedThreads()) > 0 {
		t.Errorf("stopped are %v and %v", second.StoppedThreads(), third.StoppedThreads())
	}
}
