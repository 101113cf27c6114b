// Package sweep plants a probe at every instruction of generated functions, in every
// placement, lets threads execute each, and compares what the functions return with what
// they return without probes. The functions keep values where code between two instructions
// can destroy them: in the red zone below the stack pointer, in the flags, in general and
// in vector registers; they branch, loop, call, and jump by tables.
//
// Command torture runs it with -places. One goroutine owns the
// monitor and its victim.
package sweep
