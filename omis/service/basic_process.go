package service

import "mirador/omis"

// processActions returns the manipulation and information services for processes (OMIS 8.1.2).
func processActions() []Service {
	list := []Service{
		{
			Name: "proc_create", Kind: Manipulation, Need: Optional, Object: omis.ClassNode,
			Params: []Param{nodeList(), StringParam("exec"), StringsParam("argv"), StringsParam("envp"), StringsParam("io")},
			Result: "token", Role: Debug, Support: wholly(),
			Doc:   "start a process, stopped before its first instruction, and attach to it",
			Linux: "fork and exec in a session of its own, seized by ptrace before the first instruction; its working directory is `PWD` of its environment",
		},
		{
			Name: "proc_attach", Kind: Manipulation, Need: Optional, Object: omis.ClassProcess,
			Params: []Param{procList()}, Role: Control, Support: wholly(),
			Doc:   "attach to processes by their tokens",
			Linux: "a process is traced only when a service needs it",
		},
		{
			Name: "proc_attach3", Kind: Manipulation, Need: Optional, Object: omis.ClassNode,
			Params: []Param{nodeList(), IntegerParam("pid"), StringParam("exec")},
			Result: "token", Role: Control, Support: wholly(),
			Doc:   "attach to a process by its local id and return its token",
			Linux: "/proc; pid and start time together identify a process permanently. Refused, with the reason: a process with another tracer, a 32-bit program, a zombie, a kernel thread, the monitor itself",
		},
		{
			Name: "proc_detach", Kind: Manipulation, Need: Optional, Object: omis.ClassProcess,
			Params: []Param{procList()}, Role: Control, Support: wholly(),
			Doc:   "detach from processes and remove all instrumentation of this tool",
			Linux: "restores every byte, then ends tracing",
		},
		{
			Name: "proc_send_signal", Kind: Manipulation, Need: Optional, Object: omis.ClassProcess,
			Params: []Param{procList(), IntegerParam("sig")}, Role: Debug, Support: wholly(),
			Doc:   "send a signal to processes",
			Linux: "`pidfd_send_signal`",
		},
		{
			Name: "proc_set_priority", Kind: Manipulation, Need: Optional, Object: omis.ClassProcess,
			Params: []Param{procList(), IntegerParam("val")}, Role: Debug,
			Needs: ThreadControl, Support: wholly(),
			Doc:   "change the scheduling priority of processes",
			Linux: "the nice value of every thread; if the kernel refuses one, the others are restored. Raising a priority requires CAP_SYS_NICE",
		},
		{
			Name: "proc_write_memory", Kind: Manipulation, Need: Required, Object: omis.ClassProcess,
			Params: append(blocks(), IntegersParam("val")), Role: Debug,
			Needs: MemoryWriting, Support: wholly(),
			Doc:   "write bytes into the memory of processes",
			Linux: "/proc/PID/mem, also for pages that the program may not write (a private copy of the page). At a breakpoint the displaced instruction is written, and its copy is renewed",
		},
		{
			Name: "proc_write_memory_bin", Kind: Manipulation, Need: Optional, Object: omis.ClassProcess,
			Params: append(blocks(), BinaryParam("val")), Role: Debug,
			Needs: MemoryWriting, Support: wholly(),
			Doc:   "write binary data into the memory of processes",
			Linux: "as `proc_write_memory`",
		},
		{
			Name: "proc_migrate", Kind: Manipulation, Need: Optional, Object: omis.ClassProcess,
			Params: []Param{procList(), TokenParam("node", omis.ClassNode)}, Role: Debug,
			Needs: Checkpointing, Support: partly("both nodes must see the same checkpoints, as on a shared disk"),
			Doc:   "move processes to another node",
			Linux: "`proc_checkpoint` here, `proc_restore` there; requires CRIU on both nodes, and a directory for checkpoints that both nodes see. The process keeps its tokens and its conditional requests; it must have no children",
		},
		{
			Name: "proc_checkpoint", Kind: Manipulation, Need: Optional, Object: omis.ClassProcess,
			Params: []Param{procList(), StringParam("name")}, Role: Debug,
			Needs: Checkpointing, Support: wholly(),
			Doc:   "save a consistent checkpoint of processes",
			Linux: "CRIU, for each process with its descendants; they continue afterwards. Breakpoints are removed meanwhile, but no thread of an observed process executes anything unobserved. The monitor tests once whether CRIU can save and restore processes on this machine; if not, the call returns UNSUPPORTED_SERVICE with CRIU's message. If CRIU refuses a process, it returns OS_ERROR with the reason",
		},
		{
			Name: "proc_restore", Kind: Manipulation, Need: Optional,
			Params: []Param{StringParam("name")}, Result: "struct { token* procs; integer num_procs; }", Role: Debug,
			Needs: Checkpointing, Support: wholly(),
			Doc:   "restore processes from a checkpoint and attach to them",
			Linux: "CRIU; restores all saved processes, including descendants. They get their former ids, which must be free, and run as soon as the tool is attached to them",
		},
		{
			Name: "proc_get_info", Kind: Information, Need: PartiallyRequired, Object: omis.ClassProcess,
			Params: []Param{procList(), IntegerParam("flags")},
			Result: "struct { Proc_static_info statinfo; Proc_dynamic_info dyninfo; }", Role: Read, Support: wholly(),
			Doc:   "return information on processes; each bit of flags selects a component, in ascending order; bits 25 to 30 are the user time, the time for which live threads waited for a processor, the bytes read and written by system calls, the heap, and other resident memory",
			Linux: "/proc/PID; the state, times and priority of 16 and more processes at once by an eBPF task iterator, as for `thread_get_info`. Always −1: `int_resident_size` (Linux has no such value for processes), `swaps` (it swaps pages). Undefined tokens: the message queue, and a parent that the tool is not attached to. The global id is the local one, the user's argv is argv; empty arguments at its end are omitted, because they cannot be distinguished from a shortened title. `file_input` and `file_output` are in blocks of 512 bytes, as in getrusage; context switches are those of the live threads",
		},
		{
			Name: "proc_read_memory", Kind: Information, Need: Required, Object: omis.ClassProcess,
			Params: append(blocks(), IntegerParam("count")), Result: "integer*", Role: Read, Support: wholly(),
			Doc:   "read the memory of processes as a list of bytes",
			Linux: "`process_vm_readv`, without stopping the process; breakpoints are hidden. Pages that the program itself may not read are not read",
		},
		{
			Name: "proc_read_memory_bin", Kind: Information, Need: Optional, Object: omis.ClassProcess,
			Params: append(blocks(), IntegerParam("count")), Result: "binary", Role: Read, Support: wholly(),
			Doc:   "read the memory of processes as binary data",
			Linux: "as `proc_read_memory`",
		},
		{
			Name: "proc_get_loader_info", Kind: Information, Need: PartiallyRequired, Object: omis.ClassProcess,
			Params: []Param{procList()}, Result: "struct { integer num_load_modules; Loader_info* loader_info; }",
			Role: Read, Support: wholly(),
			Doc:   "return the addresses of the load modules of processes, the executable first",
			Linux: "/proc/PID/maps and the program headers of the mapped files, in the process's mount namespace",
		},
	}
	return under(omis.ClassProcess, list)
}

// blocks returns the parameters of the services that read and write memory.
func blocks() []Param {
	return []Param{procList(), IntegerParam("addr"), IntegerParam("blocklength"), IntegerParam("stride")}
}

// processEvents returns the event services for processes (OMIS 8.1.2).
func processEvents() []Service {
	list := []Service{
		{
			Name: "proc_has_terminated", Need: Required,
			Doc:   "a process has terminated",
			Linux: "a pidfd; the process is not traced. If the list queries the process (`proc_get_info`, `thread_get_info`, `proc_read_memory` and others of `$proc`, of one of its tokens or of `[]`), the process is traced and held at its exit until the list is done (`PTRACE_EVENT_EXIT` of its last thread), so that the list returns the final values; such lists are executed before the others. If it cannot be traced, the list is executed when the process has ended; `$held` is empty then, and the placement has the reason. What follows the exit, above all the release of the memory, is not in the CPU time",
		},
		{
			Name: "proc_has_been_stopped", Need: Required,
			Doc:   "all threads of a process have been stopped by the monitor",
			Linux: "reported by the engine after `thread_stop` has stopped the last running thread",
		},
		{
			Name: "proc_has_been_continued", Need: Required,
			Doc:   "all threads of a process have been continued by the monitor",
			Linux: "reported by the engine after the last stopped thread was continued",
		},
		{
			Name: "proc_has_been_scheduled", Need: Optional,
			Doc:   "a process has been assigned a processor",
			Linux: "as `thread_has_been_scheduled`, for any of its threads",
		},
		{
			Name: "proc_has_been_descheduled", Need: Optional,
			Doc:   "a process has lost its processor",
			Linux: "as `thread_has_been_descheduled`, for any of its threads",
		},
		{
			Name: "proc_will_be_migrated", Need: Optional, Needs: Checkpointing,
			Context: []Param{TokenParam("dest_node", omis.ClassNode)},
			Doc:     "the monitor is about to move a process to another node",
			Linux:   "reported by the engine before `proc_migrate` begins",
		},
		{
			Name: "proc_has_been_migrated", Need: Optional, Needs: Checkpointing,
			Doc:   "the monitor has moved a process to another node",
			Linux: "reported by the engine after `proc_migrate` has ended",
		},
	}
	for i := range list {
		list[i].Kind, list[i].Object, list[i].Role, list[i].Support = Event, omis.ClassProcess, Control, wholly()
		list[i].Params = []Param{procList()}
	}
	return under(omis.ClassProcess, list)
}

// under sets the class under which services are listed.
func under(c omis.Class, list []Service) []Service {
	for i := range list {
		list[i].Class = c
	}
	return list
}
