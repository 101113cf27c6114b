package service

import "mirador/omis"

// threadActions returns the manipulation and information services for threads (OMIS 8.1.3).
func threadActions() []Service {
	list := []Service{
		{
			Name: "thread_detach", Kind: Manipulation, Need: Optional, Params: []Param{threadList()}, Role: Control,
			Support: wholly(),
			Doc:     "detach from threads",
		},
		{
			Name: "thread_stop", Kind: Manipulation, Need: PartiallyRequired, Params: []Param{threadList()},
			Role: Control, Support: wholly(),
			Doc: "stop threads until thread_continue",
		},
		{
			Name: "thread_continue", Kind: Manipulation, Need: PartiallyRequired, Params: []Param{threadList()},
			Role: Control, Support: wholly(),
			Doc: "continue stopped threads",
		},
		{
			Name: "thread_suspend", Kind: Manipulation, Need: Required, Params: []Param{threadList()}, Role: Control,
			Needs: Suspending, Support: wholly(),
			Doc: "hold threads for a short time; suspensions are counted",
		},
		{
			Name: "thread_resume", Kind: Manipulation, Need: Required, Params: []Param{threadList()}, Role: Control,
			Needs: Suspending, Support: wholly(),
			Doc: "undo one suspension of threads",
		},
		{
			Name: "thread_send_signal", Kind: Manipulation, Need: Optional,
			Params: []Param{threadList(), IntegerParam("sig")}, Role: Debug,
			Needs: ThreadControl, Support: wholly(),
			Doc: "send a signal to threads",
		},
		{
			Name: "thread_set_priority", Kind: Manipulation, Need: Optional,
			Params: []Param{threadList(), IntegerParam("val")}, Role: Debug,
			Needs: ThreadControl, Support: wholly(),
			Doc: "change the scheduling priority of threads",
		},
		{
			Name: "thread_write_int_regs", Kind: Manipulation, Need: Required,
			Params: []Param{threadList(), IntegerParam("reg"), IntegersParam("val")}, Role: Debug,
			Needs: Registers, Support: wholly(),
			Doc: "write integer registers of threads",
		},
		{
			Name: "thread_write_fp_regs", Kind: Manipulation, Need: Required,
			Params: []Param{threadList(), IntegerParam("reg"), FloatsParam("val")}, Role: Debug,
			Needs: Registers, Support: wholly(),
			Doc: "write floating point registers of threads",
		},
		{
			Name: "thread_goto", Kind: Manipulation, Need: Optional,
			Params: []Param{threadList(), IntegerParam("addr")}, Role: Debug,
			Needs: Registers, Support: wholly(),
			Doc: "set the program counter of threads",
		},
		{
			Name: "thread_call", Kind: Manipulation, Need: Optional,
			Params: []Param{threadList(), IntegerParam("addr")}, Role: Debug,
			Needs: Registers, Support: wholly(),
			Doc: "make threads call a subroutine",
		},
		{
			Name: "thread_get_info", Kind: Information, Need: PartiallyRequired,
			Params: []Param{threadList(), IntegerParam("flags")},
			Result: "struct { Thread_static_info statinfo; Thread_dynamic_info dyninfo; [string name;] }",
			Role:   Read, Support: wholly(),
			Doc: "return information on threads; each bit of flags selects a component, in ascending order; bit 16 is the thread's name",
		},
		{
			Name: "thread_get_backtrace", Kind: Information, Need: Required,
			Params: []Param{threadList(), IntegerParam("depth")},
			Result: "struct { integer num_frames; Stack_element* stack; }", Role: Read, Support: wholly(),
			Doc: "return the procedure stacks of threads, the innermost frame first; depth 0 returns the whole stack. Each stack element contains pc and fp; fp is the canonical frame address, " +
				"the value of the stack pointer before the call that created the frame (rbp + 16 in a function with a frame pointer)",
		},
		{
			Name: "thread_read_int_regs", Kind: Information, Need: Required,
			Params: []Param{threadList(), IntegerParam("reg"), IntegerParam("num")}, Result: "integer*", Role: Read,
			Needs: Registers, Support: wholly(),
			Doc: "read integer registers of threads; from 0 on, num may exceed the number of registers",
		},
		{
			Name: "thread_read_fp_regs", Kind: Information, Need: Required,
			Params: []Param{threadList(), IntegerParam("reg"), IntegerParam("num")}, Result: "floating*", Role: Read,
			Needs: Registers, Support: wholly(),
			Doc: "read floating point registers of threads; from 0 on, num may exceed the number of registers",
		},
	}
	for i := range list {
		list[i].Object = omis.ClassThread
	}
	return under(omis.ClassThread, list)
}
