// Package machine tells about a node as a whole (OMIS node_get_info, 8.1.1):
// the operating system, processors, memory, disks, network links and users, and
// what they are doing.
//
// Only omis/linux may import it. A Machine may be used from any goroutine. Rates
// are averaged over the last seconds by samplers, goroutines that run only while
// somebody asks and end a quarter of a minute after the last question.
package machine
