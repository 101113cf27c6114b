package service

import "mirador/omis"

// threadActions returns the manipulation and information services for threads (OMIS 8.1.3).
func threadActions() []Service {
	list := []Service{
		{
			Name: "thread_detach", Kind: Manipulation, Need: Optional, Params: []Param{threadList()}, Role: Control,
			Support: wholly(),
			Doc:     "detach from threads",
			Linux:   "the thread passes breakpoints of other tools without an event; it remains traced as long as they need its process to be traced",
		},
		{
			Name: "thread_stop", Kind: Manipulation, Need: PartiallyRequired, Params: []Param{threadList()},
			Role: Control, Support: wholly(),
			Doc:   "stop threads until thread_continue",
			Linux: "`PTRACE_INTERRUPT` to all, then a wait for all; if the monitor is killed, the threads continue. A thread that waits uninterruptibly in the kernel stops when it wakes",
		},
		{
			Name: "thread_continue", Kind: Manipulation, Need: PartiallyRequired, Params: []Param{threadList()},
			Role: Control, Support: wholly(),
			Doc:   "continue stopped threads",
			Linux: "`PTRACE_CONT`; a process that SIGSTOP has stopped remains stopped",
		},
		{
			Name: "thread_suspend", Kind: Manipulation, Need: Required, Params: []Param{threadList()}, Role: Control,
			Needs: Suspending, Support: wholly(),
			Doc:   "hold threads for a short time; suspensions are counted",
			Linux: "as `thread_stop`, with a counter, and independent of it",
		},
		{
			Name: "thread_resume", Kind: Manipulation, Need: Required, Params: []Param{threadList()}, Role: Control,
			Needs: Suspending, Support: wholly(),
			Doc:   "undo one suspension of threads",
			Linux: "as `thread_continue`",
		},
		{
			Name: "thread_send_signal", Kind: Manipulation, Need: Optional,
			Params: []Param{threadList(), IntegerParam("sig")}, Role: Debug,
			Needs: ThreadControl, Support: wholly(),
			Doc:   "send a signal to threads",
			Linux: "`tgkill`",
		},
		{
			Name: "thread_set_priority", Kind: Manipulation, Need: Optional,
			Params: []Param{threadList(), IntegerParam("val")}, Role: Debug,
			Needs: ThreadControl, Support: wholly(),
			Doc:   "change the scheduling priority of threads",
			Linux: "the thread's nice value. Raising a priority requires CAP_SYS_NICE",
		},
		{
			Name: "thread_write_int_regs", Kind: Manipulation, Need: Required,
			Params: []Param{threadList(), IntegerParam("reg"), IntegersParam("val")}, Role: Debug,
			Needs: Registers, Support: wholly(),
			Doc:   "write integer registers of threads",
			Linux: "`PTRACE_SETREGS`. DWARF's numbers: 0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 6 rbp, 7 rsp, 8–15, 16 rip; then 17 eflags, 18 fs_base, 19 gs_base. A running thread is stopped for it. Writing rip aborts the current system call",
		},
		{
			Name: "thread_write_fp_regs", Kind: Manipulation, Need: Required,
			Params: []Param{threadList(), IntegerParam("reg"), FloatsParam("val")}, Role: Debug,
			Needs: Registers, Support: wholly(),
			Doc:   "write floating point registers of threads",
			Linux: "`PTRACE_SETFPREGS`: 0–15 are the low doubles of xmm0–xmm15, 16–23 st0–st7; the wider parts are not changed",
		},
		{
			Name: "thread_goto", Kind: Manipulation, Need: Optional,
			Params: []Param{threadList(), IntegerParam("addr")}, Role: Debug,
			Needs: Registers, Support: wholly(),
			Doc:   "set the program counter of threads",
			Linux: "writes rip; the current system call is aborted with EINTR",
		},
		{
			Name: "thread_call", Kind: Manipulation, Need: Optional,
			Params: []Param{threadList(), IntegerParam("addr")}, Role: Debug,
			Needs: Registers, Support: wholly(),
			Doc:   "make threads call a subroutine",
			Linux: "pushes rip and writes it, as a call instruction does; registers are not saved. For a thread in a system call, all registers are restored when the subroutine returns, and the system call is restarted",
		},
		{
			Name: "thread_get_info", Kind: Information, Need: PartiallyRequired,
			Params: []Param{threadList(), IntegerParam("flags")},
			Result: "struct { Thread_static_info statinfo; Thread_dynamic_info dyninfo; [string name;] }",
			Role:   Read, Support: wholly(),
			Doc:   "return information on threads; each bit of flags selects a component, in ascending order; bit 16 is the thread's name, bits 17 to 26 are the user time, the time for which it waited for a processor, minor and major page faults, voluntary and involuntary context switches, bytes read and written by system calls, and file input and output",
			Linux: "/proc/PID/task; 16 and more threads of a process at once by an eBPF task iterator, which is faster, with CAP_BPF and CAP_PERFMON on Linux 6.1. The root function is read from the stack, for which the thread is stopped; the parent is known for threads whose creation was observed, otherwise it is an undefined token, as is the message queue. `stack_size` is the size of the mapping that contains the stack pointer, −1 if there is none; the root function is 0 if the stack does not show it",
		},
		{
			Name: "thread_get_backtrace", Kind: Information, Need: Required,
			Params: []Param{threadList(), IntegerParam("depth")},
			Result: "struct { integer num_frames; Stack_element* stack; }", Role: Read, Support: wholly(),
			Doc:   "return the procedure stacks of threads, the innermost frame first; depth 0 returns the whole stack. Each stack element contains pc and fp; fp is the canonical frame address, the value of the stack pointer before the call that created the frame (rbp + 16 in a function with a frame pointer)",
			Linux: "the threads are stopped together for a copy of registers and stack, then continue; frames are found with `.eh_frame` and `.debug_frame`, or with the frame pointer where these are missing: through optimised code, signals, libraries and the vdso. Inlined calls have no frames",
		},
		{
			Name: "thread_read_int_regs", Kind: Information, Need: Required,
			Params: []Param{threadList(), IntegerParam("reg"), IntegerParam("num")}, Result: "integer*", Role: Read,
			Needs: Registers, Support: wholly(),
			Doc:   "read integer registers of threads; from 0 on, num may exceed the number of registers",
			Linux: "`PTRACE_GETREGS`, numbered as for `thread_write_int_regs`; at a breakpoint rip is the breakpoint's address",
		},
		{
			Name: "thread_read_fp_regs", Kind: Information, Need: Required,
			Params: []Param{threadList(), IntegerParam("reg"), IntegerParam("num")}, Result: "floating*", Role: Read,
			Needs: Registers, Support: wholly(),
			Doc:   "read floating point registers of threads; from 0 on, num may exceed the number of registers",
			Linux: "`PTRACE_GETFPREGS`, numbered as for `thread_write_fp_regs`",
		},
	}
	for i := range list {
		list[i].Object = omis.ClassThread
	}
	return under(omis.ClassThread, list)
}
