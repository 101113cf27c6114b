// Package calls contains the system calls of Linux on x86-64: their names, numbers and
// parameters (OMIS thread_has_started_sys_call, thread_has_ended_sys_call). The file
// table.txt lists them.
//
// Only omis/linux may import it. It decodes registers and memory that the caller
// provides, on the caller's goroutine.
package calls
