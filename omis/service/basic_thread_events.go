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
		},
		{
			Name: "thread_creates_thread", Need: Optional,
			Context: []Param{TokenParam("new_thread", omis.ClassThread)},
			Doc:     "a thread creates a thread",
		},
		{
			Name: "thread_has_terminated", Need: Required,
			Doc: "a thread has terminated",
		},
		{
			Name: "thread_received_signal", Need: Optional, Params: []Param{IntegersParam("sig_list")},
			Context: []Param{IntegerParam("sig")},
			Doc:     "a thread has received one of the signals ([]: any)",
		},
		{
			Name: "thread_has_blocked", Need: Optional,
			Doc: "a thread has blocked",
		},
		{
			Name: "thread_has_been_unblocked", Need: Optional,
			Doc: "a thread is no longer blocked",
		},
		{
			Name: "thread_has_been_stopped", Need: Required,
			Doc: "a thread has been stopped by the monitor",
		},
		{
			Name: "thread_has_been_continued", Need: Required,
			Doc: "a thread has been continued by the monitor",
		},
		{
			Name: "thread_has_been_scheduled", Need: Optional,
			Doc: "a thread has been assigned a processor",
		},
		{
			Name: "thread_has_been_descheduled", Need: Optional,
			Doc: "a thread has lost its processor",
		},
		{
			Name: "thread_reached_addr", Need: Required, Params: []Param{IntegerParam("address")},
			Context: arguments(),
			Doc:     "a thread is about to execute the instruction at an address; at the beginning of a function, par1 to par6 are its first integer or address arguments as signed 64-bit integers, and int1 to int6 the same as 32-bit integers",
		},
		{
			Name: "thread_executed_insn", Need: Optional,
			Doc: "a thread has executed an instruction",
		},
		{
			Name: "thread_executed_insn_call", Need: Optional,
			Doc: "a thread has executed an instruction; a call counts as one",
		},
		{
			Name: "thread_has_started_lib_call", Need: Required, Params: []Param{lib}, OpenContext: true,
			Doc: "a thread has called a routine of a library or of the program; par1, par2 … are its arguments",
		},
		{
			Name: "thread_has_ended_lib_call", Need: Required, Params: []Param{lib}, OpenContext: true,
			Doc: "a thread has returned from a routine of a library or of the program; par1 is the result",
		},
		{
			Name: "thread_has_started_sys_call", Need: Optional, Params: []Param{sys}, OpenContext: true,
			Doc: "a thread has made a system call (\"\": any); par1, par2 … are its arguments",
		},
		{
			Name: "thread_has_ended_sys_call", Need: Optional, Params: []Param{sys}, OpenContext: true,
			Doc: "a thread has returned from a system call (\"\": any); par1 is the result",
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
	return list
}
