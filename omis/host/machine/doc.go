// Package machine describes a node as a whole (OMIS node_get_info, 8.1.1): the operating
// system, processors, memory, disks, network links, users, and their activity.
//
// Only omis/linux may import it. A Machine may be used from any goroutine. Samplers
// average rates over the last seconds; they are goroutines that end a quarter of a minute
// after the last question.
package machine
