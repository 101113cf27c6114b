package translate

import (
	"slices"
	"strings"

	"mirador/mir"
)

// Metric is a row of the metric catalog (MIR 8). The translation, the gateway's catalog and
// the reference page all read this table.
type Metric struct {
	Name     string           `json:"name" xml:"name,attr"`
	Unit     string           `json:"unit" xml:"unit,attr"` // "1" for plain numbers
	Kind     string           `json:"kind" xml:"kind,attr"` // "counter", "timer" or "gauge"
	Entities []mir.EntityKind `json:"entities" xml:"entity"`
	Region   bool             `json:"region" xml:"region,attr"` // measured when a region is executed; otherwise independent of regions
	Doc      string           `json:"what" xml:"what"`          // what it measures
	Measured string           `json:"how" xml:"how"`            // how it is measured

	source source
	falls  bool    // it is a level, whose differences may be negative
	begin  []event // what counts, or starts an interval: fromEvents, betweenEvents
	end    []event // what ends an interval: betweenEvents
	byCall bool    // exists for each system call, as NAME:CALL
	clock  string  // clock of the timer of betweenEvents; "": wall clock time
}

// source tells which service the values of a metric come from.
type source uint8

const (
	fromCounter source = iota
	fromTimer
	fromCPUTimer
	fromThreads
	fromCPU
	fromEvents
	betweenEvents
)

// Catalog returns the supported metrics in alphabetical order.
func Catalog() []Metric {
	all := []mir.EntityKind{mir.Node, mir.Process, mir.Thread}
	return []Metric{
		{
			Name: "BLOCKED_COUNT", Unit: "1", Kind: "counter", Entities: all, source: fromEvents,
			Doc:      "How often threads began to wait (for input, a lock, a time or each other) since the probe was activated or reset.",
			Measured: "pa_counter_add when thread_has_blocked",
			begin:    []event{{service: "thread_has_blocked"}},
		},
		{
			Name: "BLOCKED_TIME", Unit: "ms", Kind: "counter", Entities: all, source: betweenEvents,
			Doc:      "Total time that threads waited. A wait counts when it ends.",
			Measured: "pa_timer_start when thread_has_blocked, pa_timer_stop when thread_has_been_unblocked",
			begin:    []event{{service: "thread_has_blocked"}}, end: []event{{service: "thread_has_been_unblocked"}},
		},
		{
			Name: "COUNT", Unit: "1", Kind: "counter", Region: true, Entities: all, source: fromCounter,
			Doc:      "How often the region was executed since the probe was activated or reset.",
			Measured: "pa_counter_add at the region's entry",
		},
		{
			Name: "CPU_TIME", Unit: "ms", Kind: "gauge", Entities: all, source: fromCPU,
			Doc:      "CPU time used since the start, user and system.",
			Measured: "proc_get_info, thread_get_info: read from /proc, without stopping anything",
		},
		{
			Name: "CPU_TIME", Unit: "ms", Kind: "timer", Region: true, Entities: all, source: fromCPUTimer,
			Doc:      "CPU time of the thread from entering the region to leaving it, user and system, for the last execution, as for WC_TIME.",
			Measured: "pa_timer_start and pa_timer_stop as for WC_TIME, with a timer of the clock cpu: in the kernel, or while the thread is held",
		},
		{
			Name: "IOWAIT_COUNT", Unit: "1", Kind: "counter", Entities: all, source: fromEvents,
			Doc:      "How often threads began to wait for a disk, since the probe was activated or reset.",
			Measured: "pa_counter_add when pa_thread_has_blocked_on_io",
			begin:    []event{{service: "pa_thread_has_blocked_on_io"}},
		},
		{
			Name: "IOWAIT_TIME", Unit: "ms", Kind: "counter", Entities: all, source: betweenEvents,
			Doc:      "Total time that threads waited for a disk, in a system call or for a page that had to be read. A wait counts when it ends.",
			Measured: "pa_timer_start when pa_thread_has_blocked_on_io, pa_timer_stop when thread_has_been_unblocked",
			begin:    []event{{service: "pa_thread_has_blocked_on_io"}}, end: []event{{service: "thread_has_been_unblocked"}},
		},
		{
			Name: "NET_RECV", Unit: "ms", Kind: "counter", Entities: all, source: betweenEvents, clock: "cpu",
			Doc:      "Total time that threads spent receiving messages through sockets, without waiting: the CPU time of the system calls.",
			Measured: "pa_timer_start and pa_timer_stop of a timer with the clock cpu, at the beginning and end of the system calls recvfrom, recvmsg and recvmmsg, and of read and readv on sockets",
			begin:    systemCalls(started, "recvfrom", "recvmsg", "recvmmsg", "read@socket", "readv@socket"),
			end:      systemCalls(ended, "recvfrom", "recvmsg", "recvmmsg", "read", "readv"),
		},
		{
			Name: "NET_SEND", Unit: "ms", Kind: "counter", Entities: all, source: betweenEvents,
			Doc:      "Total time that threads spent sending messages through sockets.",
			Measured: "pa_timer_start and pa_timer_stop at the beginning and end of the system calls sendto, sendmsg and sendmmsg, and of write, writev and sendfile on sockets",
			begin:    systemCalls(started, "sendto", "sendmsg", "sendmmsg", "write@socket", "writev@socket", "sendfile@socket"),
			end:      systemCalls(ended, "sendto", "sendmsg", "sendmmsg", "write", "writev", "sendfile"),
		},
		{
			Name: "SYSCALL_COUNT", Unit: "1", Kind: "counter", Entities: all, source: fromEvents, byCall: true,
			Doc:      "How many system calls were made since the probe was activated or reset. SYSCALL_COUNT:read counts only read; any system call's name is possible.",
			Measured: "pa_counter_add when thread_has_started_sys_call",
			begin:    systemCalls(started, ""),
		},
		{
			Name: "SYSCALL_TIME", Unit: "ms", Kind: "counter", Entities: all, source: betweenEvents, byCall: true,
			Doc:      "Total time of the system calls that have ended. SYSCALL_TIME:futex measures only futex; any system call's name is possible.",
			Measured: "pa_timer_start when thread_has_started_sys_call, pa_timer_stop when thread_has_ended_sys_call",
			begin:    systemCalls(started, ""), end: systemCalls(ended, ""),
		},
		{
			Name: "THREAD_COUNT", Unit: "1", Kind: "gauge", Entities: all[:2], falls: true, source: fromThreads,
			Doc:      "The current number of live threads.",
			Measured: "thread_get_info: read from /proc, without stopping anything",
		},
		{
			Name: "WC_TIME", Unit: "ms", Kind: "timer", Region: true, Entities: all, source: fromTimer,
			Doc:      "Wall clock time from entering the region to leaving it, for the last execution. For processes and nodes, it is that of the thread that entered the region last.",
			Measured: "pa_timer_start at the region's entry, pa_timer_stop at each of its exits",
		},
	}
}

// metric finds a row by its name, which may end with the name of a system call. If a metric
// exists both with and without a region, metric returns the row that matches region.
func metric(name string, region bool) (found Metric, ok bool) {
	base, of, particular := strings.Cut(name, ":")
	for _, m := range Catalog() {
		switch {
		case m.Name == name && (!ok || m.Region == region):
			found, ok = m, true
		case particular && m.Name == base && m.byCall && isCallName(of):
			return m.of(of), true
		}
	}
	return found, ok
}

// namesOf lists the metrics with or without a region, for messages.
func namesOf(region bool) string {
	var names []string
	for _, m := range Catalog() {
		if m.Region == region {
			names = append(names, m.Name)
		}
	}
	return strings.Join(names, ", ")
}

// supports reports whether m can be measured for an entity of this kind.
func (m Metric) supports(kind mir.EntityKind) bool {
	if kind == mir.Site { // of one node
		kind = mir.Node
	}
	return kind == "" || slices.Contains(m.Entities, kind) // "": the application as a whole
}
