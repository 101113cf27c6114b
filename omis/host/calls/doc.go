// Package calls knows the system calls of Linux on x86-64: their names, numbers
// and parameters (OMIS thread_has_started_sys_call, thread_has_ended_sys_call).
// All of them stand in table.txt.
//
// Only omis/linux may import it. It is pure: it decodes registers and memory that
// it is given, on the caller's goroutine.
package calls
