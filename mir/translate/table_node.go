package translate

import "mirador/mir"

// nodeMetrics returns what node_get_info shows of the whole node in its group 14, in the order
// of the components.
func nodeMetrics() []Metric {
	list := []Metric{
		{Name: "NODE_LOAD", Unit: "1", falls: true, millionths: true, Doc: "Threads that ran, were ready or waited for a disk, averaged over the last minute."},
		{Name: "NODE_MEM_AVAILABLE", Unit: "B", falls: true, Doc: "Memory that programs could allocate without swapping."},
		{Name: "NODE_MEM_USED", Unit: "B", falls: true, Doc: "All memory less NODE_MEM_AVAILABLE."},
		{Name: "NODE_NET_BYTES_RECV", Unit: "B", Doc: "Bytes received through all network links except the loopback, since they exist."},
		{Name: "NODE_NET_BYTES_SEND", Unit: "B", Doc: "Bytes sent through all network links except the loopback, since they exist."},
		{Name: "NODE_PRESSURE_CPU", Unit: "ms", Doc: "Total time in which some thread was ready and waited for a processor (PSI), since the machine started."},
		{Name: "NODE_PRESSURE_IO", Unit: "ms", Doc: "Total time in which some thread waited for a disk (PSI), since the machine started."},
		{Name: "NODE_PRESSURE_MEM", Unit: "ms", Doc: "Total time in which some thread waited for memory (PSI), since the machine started."},
	}
	for i := range list {
		m := &list[i]
		m.Entities, m.source, m.info.node = []mir.EntityKind{mir.Node}, fromNode, i
		m.Measured = "node_get_info: from /proc/loadavg, /proc/meminfo, /proc/net/dev and /proc/pressure; no value where the kernel has none"
		if m.Kind = "counter"; m.falls {
			m.Kind = "gauge"
		}
	}
	return list
}

// groupOfNode is the bit of node_get_info that selects these components, countOfNode their number.
const (
	groupOfNode = 1 << 14
	countOfNode = 8
)
