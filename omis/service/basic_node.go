package service

import "mirador/omis"

// nodeServices returns the services for nodes (OMIS 8.1.1).
func nodeServices() []Service {
	return []Service{
		{
			Name: "node_attach", Class: omis.ClassNode, Kind: Manipulation, Need: Optional,
			Object: omis.ClassNode, Params: []Param{nodeList()},
			Role: Control, Support: wholly(),
			Doc:   "attach to nodes that were attached before, by their tokens",
			Linux: "does nothing to the machine",
		},
		{
			Name: "node_attach2", Class: omis.ClassNode, Kind: Manipulation, Need: Optional,
			Params: []Param{StringParam("node_name")}, Result: "token",
			Role: Control, Support: wholly(),
			Doc:   "attach to a node by its name and return its token",
			Linux: "the name that the monitor was started with, `localhost` or `\"\"` mean this machine",
		},
		{
			Name: "node_detach", Class: omis.ClassNode, Kind: Manipulation, Need: Optional,
			Object: omis.ClassNode, Params: []Param{nodeList()},
			Role: Control, Support: wholly(),
			Doc:   "detach from nodes and from all processes on them",
			Linux: "detaches from its processes, as `proc_detach` does",
		},
		{
			Name: "node_get_info", Class: omis.ClassNode, Kind: Information, Need: PartiallyRequired,
			Object: omis.ClassNode, Params: []Param{nodeList(), IntegerParam("flags")},
			Result: "struct { Node_static_info statinfo; Node_dynamic_info dyninfo; }",
			Role:   Read, Needs: NodeInformation, Support: wholly(),
			Doc:   "return information on nodes; flags selects it. Bit 14 selects the load of the last minute, the memory available and the other memory in bytes, the bytes received and sent through all links except the loopback, and the seconds for which some thread waited for a processor, a disk and memory",
			Linux: "from /proc, /sys, uname and utmp; rates are sampled while a tool asks for them, and averaged over 1 to 15 s; the benchmarks are short loops that run once. Always −1, because Linux has no such value: `cpu_pwj` (Linux does not distinguish waiting for a page from waiting for its disk), `cpu_swj`, `vm_swap`, `vm_swapin`, `vm_swapout` (it swaps pages, not processes). −1 without CAP_BPF and CAP_PERFMON: `os_execs`, `os_syscalls`, `dsk_sysrd`, `dsk_syswr`. −1 if unknown: `usr_maxlogins` without a line `* - maxsyslogins` for pam_limits, `cpu_clock`, `net_bandwidth` of virtual links; `net_type` is `\"\"` for hardware without a common name. −1 for a benchmark that cannot run. Without an NFS client its rates are 0",
		},
	}
}
