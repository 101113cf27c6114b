package translate

// virtualMachineMetrics returns the metrics of Table 1 of MIR's report that only a Java
// virtual machine has. They are in the catalog so that the error for such a request gives the reason.
func virtualMachineMetrics() []Metric {
	list := []Metric{
		{Name: "COMP_TIME", Unit: "ms", Kind: "counter", Doc: "Time spent with just-in-time compilation."},
		{Name: "DAEMON_THREAD_COUNT", Unit: "1", Kind: "gauge", Doc: "The current number of live daemon threads."},
		{Name: "GC_COUNT", Unit: "1", Kind: "counter", Doc: "The total number of garbage collections that have occurred."},
		{Name: "GC_TIME", Unit: "ms", Kind: "counter", Doc: "The accumulated garbage collection time."},
		{Name: "LOADED_CL_CURR", Unit: "1", Kind: "gauge", Doc: "Number of classes currently loaded."},
		{Name: "LOADED_CL_TOTAL", Unit: "1", Kind: "counter", Doc: "Number of classes loaded since the application started."},
		{Name: "NON_FINALIZED_OBJECTS", Unit: "1", Kind: "gauge", Doc: "Number of objects for which finalization is pending."},
		{Name: "UNLOADED_CL", Unit: "1", Kind: "counter", Doc: "Number of classes that have been unloaded."},
	}
	for i := range list {
		list[i].Entities = ofProcesses
		list[i].Measured = "by a Java virtual machine"
		list[i].Unavailable = "the platform of Java virtual machines reports it, which this monitor does not have; programs in machine code have no such value"
	}
	return list
}
