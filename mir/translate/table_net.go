package translate

import "slices"

// The metrics of Table 1 about the network measure system calls on sockets of any family.
// Calls that io_uring makes are no system calls of the thread and are not seen.

// Names of the system calls that send and receive on sockets, and of those that do so if
// their descriptor is a socket.
var (
	sending       = []string{"sendto", "sendmsg", "sendmmsg"}
	sendingHere   = []string{"write", "writev", "sendfile"}
	receiving     = []string{"recvfrom", "recvmsg", "recvmmsg"}
	receivingHere = []string{"read", "readv"}
)

// netCalls returns the events of a service for some system calls, and for others on sockets alone.
func netCalls(service string, always, onSockets []string) []event {
	events := systemCalls(service, always...)
	for _, name := range onSockets {
		events = append(events, event{service: service, call: name + "@socket"})
	}
	return events
}

func netMetrics() []Metric {
	return []Metric{
		{
			Name: "NET_BLOCKED_RECV", Unit: "ms", Kind: "counter", Entities: allEntities, source: betweenEvents, clock: "waiting",
			Doc:      "Total time that threads were not ready within system calls that receive: a call returns when the first bytes are there, unless it asks for more (MSG_WAITALL). Waiting in poll, select and epoll_wait is not included.",
			Measured: "pa_timer_start and pa_timer_stop of a timer with the clock waiting, at the beginning and end of the system calls of NET_RECV",
			begin:    netCalls(started, receiving, receivingHere),
			end:      systemCalls(ended, slices.Concat(receiving, receivingHere)...),
		},
		{
			Name: "NET_BLOCKED_SEND", Unit: "ms", Kind: "counter", Entities: allEntities, source: betweenEvents, clock: "waiting",
			Doc:      "Total time that threads were not ready within system calls that send, because there was no room for what they send.",
			Measured: "pa_timer_start and pa_timer_stop of a timer with the clock waiting, at the beginning and end of the system calls of NET_SEND",
			begin:    netCalls(started, sending, sendingHere),
			end:      systemCalls(ended, slices.Concat(sending, sendingHere)...),
		},
		{
			Name: "NET_BYTES_RECV", Unit: "B", Kind: "counter", Entities: allEntities, source: fromEvents, amount: true,
			Doc:      "Number of bytes received through sockets.",
			Measured: "pa_counter_add_amount of the results of recvfrom and recvmsg, of the lengths of recvmmsg's messages, and of the results of read and readv on sockets",
			begin:    append(netCalls(ended, receiving[:2], receivingHere), event{service: ended, call: "recvmmsg", amount: "par8"}),
		},
		{
			Name: "NET_BYTES_SEND", Unit: "B", Kind: "counter", Entities: allEntities, source: fromEvents, amount: true,
			Doc:      "Number of bytes sent through sockets.",
			Measured: "pa_counter_add_amount of the results of sendto and sendmsg, of the lengths of sendmmsg's messages, and of the results of write, writev and sendfile on sockets",
			begin:    append(netCalls(ended, sending[:2], sendingHere), event{service: ended, call: "sendmmsg", amount: "par7"}),
		},
		{
			Name: "NET_END", Unit: "ms", Kind: "counter", Entities: allEntities, source: betweenEvents,
			Doc:      "Total time that threads spent finalizing connections.",
			Measured: "pa_timer_start and pa_timer_stop at the beginning and end of the system calls shutdown, and close on sockets",
			begin:    netCalls(started, []string{"shutdown"}, []string{"close"}),
			end:      systemCalls(ended, "shutdown", "close"),
		},
		{
			Name: "NET_INIT", Unit: "ms", Kind: "counter", Entities: allEntities, source: betweenEvents,
			Doc:      "Total time that threads spent initializing connections: the system calls connect, accept and accept4, which include waiting for the peer.",
			Measured: "pa_timer_start and pa_timer_stop at the beginning and end of these system calls",
			begin:    systemCalls(started, "connect", "accept", "accept4"),
			end:      systemCalls(ended, "connect", "accept", "accept4"),
		},
		{
			Name: "NET_RECV", Unit: "ms", Kind: "counter", Entities: allEntities, source: betweenEvents, clock: "cpu",
			Doc:      "Total time that threads spent receiving messages through sockets, without waiting: the CPU time of the system calls.",
			Measured: "pa_timer_start and pa_timer_stop of a timer with the clock cpu, at the beginning and end of the system calls recvfrom, recvmsg and recvmmsg, and of read and readv on sockets",
			begin:    netCalls(started, receiving, receivingHere),
			end:      systemCalls(ended, slices.Concat(receiving, receivingHere)...),
		},
		{
			Name: "NET_SEND", Unit: "ms", Kind: "counter", Entities: allEntities, source: betweenEvents,
			Doc:      "Total time that threads spent sending messages through sockets.",
			Measured: "pa_timer_start and pa_timer_stop at the beginning and end of the system calls sendto, sendmsg and sendmmsg, and of write, writev and sendfile on sockets",
			begin:    netCalls(started, sending, sendingHere),
			end:      systemCalls(ended, slices.Concat(sending, sendingHere)...),
		},
	}
}
