package service

import (
	"fmt"

	"mirador/omis"
	"mirador/omis/node"
)

// threadEvents returns the event services for threads (OMIS 8.1.3).
func threadEvents() []Service {
	lib, sys := StringParam("lib_call_name"), StringParam("sys_call_name")
	list := []Service{
		{
			Name: "thread_adds_node", Need: Optional,
			Context: []Param{TokenParam("new_node", omis.ClassNode)},
			Doc:     "a thread adds a node to its application",
		},
		{
			Name: "thread_removes_node", Need: Optional,
			Context: []Param{TokenParam("rem_node", omis.ClassNode)},
			Doc:     "a thread removes a node from its application",
		},
		{
			Name: "thread_creates_proc", Need: Optional,
			Context: []Param{TokenParam("new_proc", omis.ClassProcess)},
			Doc:     "a thread creates a process",
			Linux:   "the ptrace events of fork, vfork and clone; the new process is held before its first instruction until the list is done; if it shares its creator's memory, it is held before the first instruction of the program that it executes. The tool has to attach to it",
		},
		{
			Name: "thread_creates_thread", Need: Optional,
			Context: []Param{TokenParam("new_thread", omis.ClassThread)},
			Doc:     "a thread creates a thread",
			Linux:   "the ptrace events of clone, fork and vfork: the first thread of a new process counts, too. The new thread is held before its first instruction until the list is done",
		},
		{
			Name: "thread_has_terminated", Need: Required,
			Doc:   "a thread has terminated",
			Linux: "the end of a tracee",
		},
		{
			Name: "thread_received_signal", Need: Optional, Params: []Param{IntegersParam("sig_list")},
			Context: []Param{IntegerParam("sig")},
			Doc:     "a thread has received one of the signals ([]: any)",
			Linux:   "the ptrace stop before a signal is delivered; the signal is then delivered even if the monitor is killed. SIGKILL cannot be observed",
		},
		{
			Name: "thread_has_blocked", Need: Optional,
			Doc:   "a thread has blocked",
			Linux: "the raw tracepoint sched_switch, with eBPF; the thread is not held. Requires CAP_BPF and CAP_PERFMON",
		},
		{
			Name: "thread_has_been_unblocked", Need: Optional,
			Doc:   "a thread is no longer blocked",
			Linux: "the raw tracepoint sched_wakeup, with eBPF; the thread is not held. Requires CAP_BPF and CAP_PERFMON",
		},
		{
			Name: "thread_has_been_stopped", Need: Required,
			Doc:   "a thread has been stopped by the monitor",
			Linux: "reported by the node after `thread_stop` has stopped the thread",
		},
		{
			Name: "thread_has_been_continued", Need: Required,
			Doc:   "a thread has been continued by the monitor",
			Linux: "reported by the node when `thread_continue` continues the thread",
		},
		{
			Name: "thread_has_been_scheduled", Need: Optional,
			Doc:   "a thread has been assigned a processor",
			Linux: "the raw tracepoint sched_switch, with eBPF; the thread is not held. Requires CAP_BPF and CAP_PERFMON",
		},
		{
			Name: "thread_has_been_descheduled", Need: Optional,
			Doc:   "a thread has lost its processor",
			Linux: "the raw tracepoint sched_switch, with eBPF; the thread is not held. Requires CAP_BPF and CAP_PERFMON",
		},
		{
			Name: "thread_reached_addr", Need: Required, Params: []Param{IntegerParam("address")},
			Context: arguments(),
			Doc:     "a thread is about to execute the instruction at an address; at the beginning of a function, par1 to par6 are its first integer or address arguments as signed 64-bit integers, int1 to int6 the same as 32-bit integers, and product is par1 times par2 (-1 if one is negative or it does not fit)",
			Linux:   "a jump to code that waits in memory shared with the monitor, if the program allows that, else a breakpoint; the displaced instruction is executed elsewhere, so that no other thread misses the event meanwhile. `$held` is `rendezvous` or `ptrace`, `$held_for` the seconds for which the thread has been held (see [survival](survival.md)). The event belongs to the instruction at the address: after it is unmapped, or the process executes another program, the event does not occur any more",
		},
		{
			Name: "thread_executed_insn", Need: Optional,
			Doc:   "a thread has executed an instruction",
			Linux: "`PTRACE_SINGLESTEP`; a string instruction with a prefix counts once for each repetition",
		},
		{
			Name: "thread_executed_insn_call", Need: Optional,
			Doc:   "a thread has executed an instruction; a call counts as one",
			Linux: "`PTRACE_SINGLESTEP`, and a breakpoint after each call",
		},
		{
			Name: "thread_has_started_lib_call", Need: Required, Params: []Param{lib}, OpenContext: true,
			Doc:   "a thread has called a routine of a library or of the program; par1, par2 … are its arguments",
			Linux: "breakpoints at the function's entries. The name is `[MODULE:]FUNCTION[@VERSION]`, or a C++ name without parameters. Calls from the function's own library are not reported. Parameters are read according to the ABI, with types from [prototype files](prototypes.md) or debug information, else as six integers. Libraries that are loaded later, and programs that the process executes, are watched, too; inlined calls are not events",
		},
		{
			Name: "thread_has_ended_lib_call", Need: Required, Params: []Param{lib}, OpenContext: true,
			Doc:   "a thread has returned from a routine of a library or of the program; par1 is the result",
			Linux: "as `thread_has_started_lib_call`, and breakpoints at the return addresses; the stack is not modified. If an exception or longjmp leaves a call, its end is not reported",
		},
		{
			Name: "thread_has_started_sys_call", Need: Optional, Params: []Param{sys}, OpenContext: true,
			Doc:   "a thread has made a system call (\"\": any); par1, par2 … are its arguments",
			Linux: "the raw tracepoint sys_enter, with eBPF, if the list only counts and times (see [system calls](system-calls.md)); else the ptrace stop before a system call. Even with a name, every system call of the thread stops twice: a filter in the kernel (seccomp) would have to be installed by the process itself, and could never be removed. An interrupted call that the kernel restarts is reported once",
		},
		{
			Name: "thread_has_ended_sys_call", Need: Optional, Params: []Param{sys}, OpenContext: true,
			Doc:   "a thread has returned from a system call (\"\": any); par1 is the result",
			Linux: "as `thread_has_started_sys_call`, at its end; `$par1` is the result, `$par2` errno, then the parameters; behind those of sendmmsg and recvmmsg are the bytes of their messages",
		},
		{
			Name: "thread_has_received_tagged_msg", Need: Optional, Params: []Param{IntegersParam("tag_list")},
			Context: []Param{
				TokenParam("msg", omis.ClassMessage), TokenParam("sender", omis.ClassThread),
				IntegerParam("size"), IntegerParam("monitor_tag"),
			},
			Needs: Messages,
			Doc:   "a thread has received a message that the monitor had tagged",
		},
	}
	for i := range list {
		list[i].Kind, list[i].Object, list[i].Role, list[i].Support = Event, omis.ClassThread, Control, wholly()
		list[i].Params = append([]Param{threadList()}, list[i].Params...)
	}
	return under(omis.ClassThread, list)
}

// arguments returns the context parameters of thread_reached_addr, in the order of
// program.ArgumentsOf.
func arguments() (list []Param) {
	for _, kind := range []string{"par", "int"} {
		for i := range len(node.Args{}) {
			list = append(list, IntegerParam(fmt.Sprint(kind, i+1)))
		}
	}
	return append(list, IntegerParam("product"))
}
