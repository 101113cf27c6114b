// Package library finds the exported functions of a process by name, and decodes calls to
// them (OMIS thread_has_started_lib_call, thread_has_ended_lib_call): where a call
// starts, whether the application itself made it, and its parameters and result by the
// System V ABI for x86-64. Types come from a prototype file, else from debug information;
// a function without either has six integers.
//
// Only omis/linux may import it. A Catalog may be used from any goroutine. Decoding a
// call has no side effects, and may run while the thread is held.
package library
