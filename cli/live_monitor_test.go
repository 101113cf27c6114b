package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"mirador/omis"
	"mirador/omis/node"
)

// TestRequestsLive compares events with the witness's count of calls, while a request is enabled
// and while it is disabled.
func TestRequestsLive(t *testing.T) {
	l, w := startWitness(t)
	d := l.define(t, "thread_reached_addr([p_1],%#x) : print([$thread])", w.work)
	w.says("work", 5)
	d.await(t, 5)
	l.ask(t, "csr_disable([%s])", d.csr)
	wantTraced(t, w, false)
	w.says("work", 7)
	d.await(t, 5)
	l.ask(t, "csr_enable([%s])", d.csr)
	wantTraced(t, w, true)
	w.says("work", 2)
	d.await(t, 7)
	l.ask(t, "csr_delete([%s])", d.csr)
	w.says("work", 3)
	d.await(t, 7)
	l.refused(t, omis.UnknownObject, "csr_enable([%s])", d.csr)
}

// wantTraced checks by /proc whether a thread of this process traces the witness.
func wantTraced(t *testing.T, w *witness, want bool) {
	t.Helper()
	tracer := status(t, w.pid, w.pid, "TracerPid")
	if _, err := os.Stat("/proc/self/task/" + tracer); (err == nil) != want || !want && tracer != "0" {
		t.Errorf("the witness is traced by %s", tracer)
	}
}

// TestUserEventsLive raises an event at each call of a function, with a parameter from a register
// that the witness has set.
func TestUserEventsLive(t *testing.T) {
	l, w := startWitness(t)
	e := text(l.ask(t, "user_event_create()")[0])
	d := l.define(t, "user_event_has_been_raised([%s]) : print([$par1, $par2])", e)
	l.define(t, `thread_has_ended_lib_call([p_1],"rand_r") : user_event_raise(%s, [$par1, "told"], 0)`, e)
	said := w.says("library", 6)
	d.await(t, 6)
	wantText(t, "first parameters", strings.Join(d.print(0), " "), strings.Join(said, " "))
	wantText(t, "second parameters", strings.Join(d.print(1), " "), strings.Repeat("told ", 5)+"told")
	l.ask(t, "user_event_destroy(%s)", e)
	l.refused(t, omis.UnknownObject, "user_event_raise(%s, [], 0)", e)
	w.says("library", 2)
	d.await(t, 6)
}

// TestMonitorItselfLive compares the monitor's description of itself with the table of services.
// Tests of the table compare it with the specification.
func TestMonitorItselfLive(t *testing.T) {
	l := startLive(t)
	wantText(t, "print", text(omis.List(l.ask(t, `print([1, -2, 0.5, "a b", [3, n_1]])`)...)), "5 1 -2 0.5 a b 3 n_1")
	v := l.ask(t, "version()")
	wantText(t, "version of OMIS", text(omis.List(v[:2]...)), "2 0")
	wantText(t, "extensions", text(omis.List(l.ask(t, "extensions()")...)), "1 pa")
	for _, extension := range []string{"", "pa"} {
		v := l.ask(t, "services(%q)", extension)
		if n := fmt.Sprint(len(v[1].List), len(v[3].List)); n != text(omis.List(v[0], v[2])) {
			t.Errorf("services(%q): %s are listed, the reply says %s %s", extension, n, text(v[0]), text(v[2]))
		}
	}
}

// TestNodesLive compares the node's description with uname. After the node is detached, no object
// is known and the process is unchanged.
func TestNodesLive(t *testing.T) {
	l, w := startWitness(t)
	wantText(t, "node", text(l.ask(t, `node_attach2("localhost")`)[0]), "n_1")
	l.ask(t, "node_attach([n_1])")
	system := l.ask(t, "node_get_info([n_1],3)")
	wantText(t, "name and system", text(omis.List(system[:5]...)),
		strings.Join([]string{"here", uname(t, "-s"), uname(t, "-v"), uname(t, "-r"), uname(t, "-n")}, " "))
	d := l.define(t, "thread_reached_addr([p_1],%#x) : print([1])", w.work)
	w.says("work", 2)
	d.await(t, 2)
	l.ask(t, "node_detach([n_1])")
	wantTraced(t, w, false)
	wantText(t, "text", gdb(t, w.pid, w.pid, "*(unsigned char(*)[16])work")[0], gdbOfFile(t, w))
	w.says("work", 3)
	d.await(t, 2)
	l.refused(t, omis.UnknownObject, "proc_get_info([p_1],1)")
}

func uname(t *testing.T, option string) string { return strings.TrimSpace(tells(t, "uname", option)) }

// gdbOfFile returns the first bytes of work in the witness's file.
func gdbOfFile(t *testing.T, w *witness) string {
	t.Helper()
	out := tells(t, "gdb", "-q", "-nx", "-batch", fmt.Sprintf("/proc/%d/exe", w.pid), "-ex", "print *(unsigned char(*)[16])work")
	_, value, _ := strings.Cut(out, " = ")
	return strings.TrimSpace(value)
}

// TestProcessDetachLive checks that a detached process is not traced, and can be attached again
// with its token.
func TestProcessDetachLive(t *testing.T) {
	l, w := startWitness(t)
	l.define(t, "thread_reached_addr([p_1],%#x) : print([1])", w.work)
	wantTraced(t, w, true)
	l.ask(t, "proc_detach([p_1])")
	wantTraced(t, w, false)
	l.refused(t, omis.UnknownObject, "thread_stop([p_1])")
	l.ask(t, "proc_attach([p_1])")
	wantTraced(t, w, true)
	wantText(t, "process", text(l.ask(t, "proc_get_info([p_1],%#x)", node.ProcLocalID)[0]), fmt.Sprint(w.pid))
}

// TestMessagesLive checks that every service for message queues reports that no platform provides them.
func TestMessagesLive(t *testing.T) {
	l, _ := startWitness(t)
	for _, request := range []string{
		"message_insert_into_queue(u_0,u_0,0)", "message_queue_remove(u_0,u_0)", "message_queue_clear([])", "message_tag([],1)",
		"message_create()", "message_copy(u_0,u_0)", "message_destroy([])", "message_queue_get_info([],0)",
	} {
		l.refused(t, omis.UnsupportedService, "%s", request)
	}
}
