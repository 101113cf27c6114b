package service

import "mirador/omis"

// processActions returns the manipulation and information services for processes (OMIS 8.1.2).
func processActions() []Service {
	list := []Service{
		{
			Name: "proc_create", Kind: Manipulation, Need: Optional, Object: omis.ClassNode,
			Params: []Param{nodeList(), StringParam("exec"), StringsParam("argv"), StringsParam("envp"), StringsParam("io")},
			Result: "token", Role: Debug, Support: wholly(),
			Doc: "start a process, stopped before its first instruction, and attach to it",
		},
		{
			Name: "proc_attach", Kind: Manipulation, Need: Optional, Object: omis.ClassProcess,
			Params: []Param{procList()}, Role: Control, Support: wholly(),
			Doc: "attach to processes by their tokens",
		},
		{
			Name: "proc_attach3", Kind: Manipulation, Need: Optional, Object: omis.ClassNode,
			Params: []Param{nodeList(), IntegerParam("pid"), StringParam("exec")},
			Result: "token", Role: Control, Support: wholly(),
			Doc: "attach to a process by its local id and return its token",
		},
		{
			Name: "proc_detach", Kind: Manipulation, Need: Optional, Object: omis.ClassProcess,
			Params: []Param{procList()}, Role: Control, Support: wholly(),
			Doc: "detach from processes and remove all instrumentation of this tool",
		},
		{
			Name: "proc_send_signal", Kind: Manipulation, Need: Optional, Object: omis.ClassProcess,
			Params: []Param{procList(), IntegerParam("sig")}, Role: Debug, Support: wholly(),
			Doc: "send a signal to processes",
		},
		{
			Name: "proc_set_priority", Kind: Manipulation, Need: Optional, Object: omis.ClassProcess,
			Params: []Param{procList(), IntegerParam("val")}, Role: Debug,
			Needs: ThreadControl, Support: wholly(),
			Doc: "change the scheduling priority of processes",
		},
		{
			Name: "proc_write_memory", Kind: Manipulation, Need: Required, Object: omis.ClassProcess,
			Params: append(blocks(), IntegersParam("val")), Role: Debug,
			Needs: MemoryWriting, Support: wholly(),
			Doc: "write bytes into the memory of processes",
		},
		{
			Name: "proc_write_memory_bin", Kind: Manipulation, Need: Optional, Object: omis.ClassProcess,
			Params: append(blocks(), BinaryParam("val")), Role: Debug,
			Needs: MemoryWriting, Support: wholly(),
			Doc: "write binary data into the memory of processes",
		},
		{
			Name: "proc_migrate", Kind: Manipulation, Need: Optional, Object: omis.ClassProcess,
			Params: []Param{procList(), TokenParam("node", omis.ClassNode)}, Role: Debug,
			Needs: Checkpointing, Support: partly("both nodes must see the same checkpoints, as on a shared disk"),
			Doc: "move processes to another node",
		},
		{
			Name: "proc_checkpoint", Kind: Manipulation, Need: Optional, Object: omis.ClassProcess,
			Params: []Param{procList(), StringParam("name")}, Role: Debug,
			Needs: Checkpointing, Support: wholly(),
			Doc: "save a consistent checkpoint of processes",
		},
		{
			Name: "proc_restore", Kind: Manipulation, Need: Optional,
			Params: []Param{StringParam("name")}, Result: "struct { token* procs; integer num_procs; }", Role: Debug,
			Needs: Checkpointing, Support: wholly(),
			Doc: "restore processes from a checkpoint and attach to them",
		},
		{
			Name: "proc_get_info", Kind: Information, Need: PartiallyRequired, Object: omis.ClassProcess,
			Params: []Param{procList(), IntegerParam("flags")},
			Result: "struct { Proc_static_info statinfo; Proc_dynamic_info dyninfo; }", Role: Read, Support: wholly(),
			Doc: "return information on processes; each bit of flags selects a component, in ascending order",
		},
		{
			Name: "proc_read_memory", Kind: Information, Need: Required, Object: omis.ClassProcess,
			Params: append(blocks(), IntegerParam("count")), Result: "integer*", Role: Read, Support: wholly(),
			Doc: "read the memory of processes as a list of bytes",
		},
		{
			Name: "proc_read_memory_bin", Kind: Information, Need: Optional, Object: omis.ClassProcess,
			Params: append(blocks(), IntegerParam("count")), Result: "binary", Role: Read, Support: wholly(),
			Doc: "read the memory of processes as binary data",
		},
		{
			Name: "proc_get_loader_info", Kind: Information, Need: PartiallyRequired, Object: omis.ClassProcess,
			Params: []Param{procList()}, Result: "struct { integer num_load_modules; Loader_info* loader_info; }",
			Role: Read, Support: wholly(),
			Doc: "return the addresses of the load modules of processes, the executable first",
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
			Doc: "a process has terminated",
		},
		{
			Name: "proc_has_been_stopped", Need: Required,
			Doc: "all threads of a process have been stopped by the monitor",
		},
		{
			Name: "proc_has_been_continued", Need: Required,
			Doc: "all threads of a process have been continued by the monitor",
		},
		{
			Name: "proc_has_been_scheduled", Need: Optional,
			Doc: "a process has been assigned a processor",
		},
		{
			Name: "proc_has_been_descheduled", Need: Optional,
			Doc: "a process has lost its processor",
		},
		{
			Name: "proc_will_be_migrated", Need: Optional, Needs: Checkpointing,
			Context: []Param{TokenParam("dest_node", omis.ClassNode)},
			Doc:     "the monitor is about to move a process to another node",
		},
		{
			Name: "proc_has_been_migrated", Need: Optional, Needs: Checkpointing,
			Doc: "the monitor has moved a process to another node",
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
