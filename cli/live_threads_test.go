package cli

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/node"
)

// TestRegistersLive compares the registers that are read with gdb, and the registers that are
// written with gdb and the program.
func TestRegistersLive(t *testing.T) {
	l, w := startWitness(t)
	spinner := l.token(t, w.spinner)
	names := strings.Fields("$rax $rdx $rcx $rbx $rsi $rdi $rbp $rsp $r8 $r9 $r10 $r11 $r12 $r13 $r14 $r15")
	integers := func() string {
		return strings.Join(texts(l.ask(t, "thread_read_int_regs([%s],0,16)", spinner)[0].List), " ")
	}
	seen := func() string {
		expressions := make([]string, len(names))
		for i, name := range names {
			expressions[i] = "(unsigned long)" + name
		}
		return strings.Join(gdb(t, w.pid, w.spinner, expressions...), " ")
	}
	eventually(t, "the thread spins", func() bool { return strings.HasPrefix(integers(), "4369 ") })
	wantText(t, "registers", integers(), seen())

	l.ask(t, "thread_write_int_regs([%s],0,[0x1234])", spinner)
	l.ask(t, "thread_write_int_regs([%s],3,[0x5678])", spinner)
	l.ask(t, "thread_write_fp_regs([%s],1,[-2.5])", spinner)
	wantText(t, "registers written", integers(), seen())
	floats := []string{"$xmm0.v2_double[0]", "$xmm1.v2_double[0]"}
	wantText(t, "floating registers", strings.Join(gdb(t, w.pid, w.spinner, floats...), " "), "0.25 -2.5")
	wantText(t, "floating registers", strings.Join(texts(l.ask(t, "thread_read_fp_regs([%s],0,2)", spinner)[0].List), " "), "0.25 -2.5")
	l.ask(t, "thread_write_int_regs([%s],15,[0x7777])", spinner) // the thread leaves the loop
	w.until("registers", func(said []string) bool { return said[0] == "0" })
	wantText(t, "the program's", strings.Join(w.says("registers", 0), " "), "0 1234 5678 -2.5")
}

// TestGotoAndCallLive checks that a thread that was made to call a function then continues as
// before, and that a thread that was sent to an address runs there.
func TestGotoAndCallLive(t *testing.T) {
	l, w := startWitness(t)
	spinner, waiter := l.token(t, w.spinner), l.token(t, w.waiter)
	preserved := func() string { // registers that a function must preserve
		all := texts(l.ask(t, "thread_read_int_regs([%s],0,16)", spinner)[0].List)
		return strings.Join([]string{all[3], all[6], all[7], strings.Join(all[12:], " ")}, " ")
	}
	eventually(t, "the thread spins", func() bool {
		return text(l.ask(t, "thread_read_int_regs([%s],3,1)", spinner)[0]) == "17476"
	})
	before := preserved()
	for n := range 3 {
		l.ask(t, "thread_call([%s],%#x)", spinner, w.called)
		w.until("calls", func(said []string) bool { return said[0] == fmt.Sprint(n+1) && said[1] == fmt.Sprint(w.spinner) })
	}
	eventually(t, "the thread is back", func() bool { return preserved() == before })
	l.ask(t, "thread_goto([%s],%#x)", waiter, w.elsewhere)
	w.until("calls", func(said []string) bool { return said[2] == fmt.Sprint(w.waiter) })
	wantText(t, "gdb", gdb(t, w.pid, w.waiter, "elsewhere_by")[0], fmt.Sprint(w.waiter))
}

// TestCallAtEventLive makes a thread call a function from an event's action list. The thread
// continues after the event's address and does not raise the event again.
func TestCallAtEventLive(t *testing.T) {
	l, w := startWitness(t)
	d := l.define(t, "thread_reached_addr([p_1],%#x) : thread_call([$thread],%#x)", w.work, w.called)
	wantText(t, "work", w.says("work", 5)[0], "35") // 3(0+...+4)+5
	d.await(t, 5)
	wantText(t, "calls", strings.Join(w.says("calls", 0)[:2], " "), fmt.Sprintf("5 %d", w.pid))
}

// TestThreadInfoLive compares each component with ps and /proc.
func TestThreadInfoLive(t *testing.T) {
	l, w := startWitness(t)
	l.ask(t, "thread_stop([p_1])")
	own := strings.TrimSpace(tells(t, "ps", "-p", fmt.Sprint(os.Getpid()), "-o", "ni=")) // inherited
	for tid, root := range map[int]string{w.pid: "main", w.spinner: "spin", w.waiter: "await"} {
		got := l.ask(t, "thread_get_info([%s],%#x)", l.token(t, tid), node.ThreadSystemTime<<1-1|node.ThreadName)
		if len(got) != 13 {
			t.Fatalf("%d components", len(got))
		}
		seen := addressIn(t, w, root)
		path := fmt.Sprintf("/proc/%d/task/%d", w.pid, tid)
		comm, _ := os.ReadFile(path + "/comm")
		for bit, want := range map[node.ThreadFields]string{
			node.ThreadProcess: "p_1", node.ThreadGlobalID: fmt.Sprint(tid), node.ThreadRootFunct: seen,
			node.ThreadParent:       "u_0", // the thread was created before the monitor attached
			node.ThreadMessageQueue: "u_0", node.ThreadStackSize: stackSize(t, w.pid, tid), node.ThreadNode: "n_1",
			node.ThreadLocalID: fmt.Sprint(tid), node.ThreadSchedulingState: fmt.Sprint(node.StateStopped), node.ThreadPriority: own,
		} {
			wantText(t, fmt.Sprintf("%s: component %#x", root, bit), text(got[shift(uint32(bit))]), want)
		}
		wantText(t, "name", text(got[12]), strings.TrimSpace(string(comm)))
		checkTimes(t, path+"/stat", got[9].Float, got[11].Float)
	}
}

// addressIn returns the address of a function: the symbol's value in the file, by nm, plus the
// address at which the process has mapped the file.
func addressIn(t *testing.T, w *witness, function string) string {
	t.Helper()
	exe := fmt.Sprintf("/proc/%d/exe", w.pid)
	at := func(name string) uint64 {
		m := regexp.MustCompile(`(?m)^([0-9a-f]+) . ` + name + `$`).FindStringSubmatch(tells(t, "nm", exe))
		n, _ := strconv.ParseUint(m[1], 16, 64)
		return n
	}
	return fmt.Sprint(w.work - at("work") + at(function))
}

// stackSize returns the size of the mapping that contains a thread's stack pointer.
func stackSize(t *testing.T, pid, tid int) string {
	t.Helper()
	call, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(call))
	sp, _ := strconv.ParseUint(f[len(f)-2], 0, 64)
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if fmt.Sscanf(line, "%x-%x", &from, &to); from <= sp && sp < to {
			return fmt.Sprint(to - from)
		}
	}
	t.Fatalf("nothing is mapped at %#x", sp)
	return ""
}

// TestBacktraceLive compares the return addresses with those of eu-stack.
func TestBacktraceLive(t *testing.T) {
	l, w := startWitness(t)
	for _, tid := range []int{w.pid, w.waiter} {
		eventually(t, "the thread waits", func() bool { return strings.HasPrefix(status(t, w.pid, tid, "State"), "S") })
		var got, want []string
		frames := l.ask(t, "thread_get_backtrace([%s],0)", l.token(t, tid))[1].List
		for i := 0; i < len(frames); i += 2 {
			got = append(got, fmt.Sprintf("%#016x", frames[i].N))
		}
		for _, m := range regexp.MustCompile(`(?m)^#\d+\s+(0x[0-9a-f]+)`).FindAllStringSubmatch(tells(t, "eu-stack", "-1", "-p", fmt.Sprint(tid)), -1) {
			n, _ := strconv.ParseUint(m[1], 0, 64)
			want = append(want, fmt.Sprintf("%#016x", n))
		}
		wantText(t, fmt.Sprint("stack of ", tid), strings.Join(got, " "), strings.Join(want, " "))
	}
}

// TestThreadDetachLive checks that a detached thread is unknown and passes breakpoints without
// events, while other threads raise them.
func TestThreadDetachLive(t *testing.T) {
	l, w := startWitness(t)
	spinner, main := l.token(t, w.spinner), l.token(t, w.pid)
	d := l.define(t, "thread_reached_addr([p_1],%#x) : print([$thread])", w.called)
	l.ask(t, "thread_call([%s],%#x)", spinner, w.called)
	w.until("calls", func(said []string) bool { return said[0] == "1" })
	d.await(t, 1)
	wantText(t, "who", strings.Join(d.print(0), " "), spinner)
	l.ask(t, "thread_detach([%s])", main)
	l.refused(t, omis.UnknownObject, "thread_stop([%s])", main)
	work := l.define(t, "thread_reached_addr([p_1],%#x) : print([$thread])", w.work)
	wantText(t, "results", w.says("work", 9)[0], "117")
	work.await(t, 0)
}

// TestSuspendNewThreadsLive suspends and resumes a process that creates threads, by unconditional
// requests and by an event's action list, and checks that all threads end.
func TestSuspendNewThreadsLive(t *testing.T) {
	l, w := startWitness(t)
	d := l.define(t, "thread_creates_thread([p_1]) : thread_suspend([$proc]) thread_resume([$proc])")
	created := make(chan []string)
	const many = 40
	go func() { created <- w.says("threads", many) }()
	late := time.After(patience)
	for {
		select {
		case tids := <-created:
			if len(tids) != many || d.count() != many {
				t.Errorf("%d threads have ended and %d events were reported, of %d threads", len(tids), d.count(), many)
			}
			w.says("work", 1)
			return
		case <-late:
			t.Fatal("a thread does not end")
		default:
		}
		reply, err := l.tool.Request(t.Context(), ": thread_suspend([p_1]) thread_resume([p_1])", nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, results := range reply {
			for _, r := range results {
				if r.Status.IsError() && r.Status != omis.UnknownObject {
					t.Errorf("%v of %v: %s", r.Status, r.Objects, r.Msg)
				}
			}
		}
	}
}
