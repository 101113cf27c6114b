// Package code assembles the eBPF programs of placement kernel, and reads the rows that they write.
//
// # Programs
//
// An action list becomes a list of steps, each of which adds to a counter, begins or ends an interval, or
// appends a record. At a uprobe, one eBPF program serves all addresses whose steps have the same shape;
// the parameters that differ are in a spot, a block of shared memory to which the cookie of the uprobe
// leads (uprobe.go, spot.go). At system calls and scheduling events, a root program is attached to the
// tracepoint. It finds the record of the process and continues with the program of that process, which
// has its parameters as constants (records.go, syscalls.go, scheduling.go).
//
// # Rows
//
// A store has a row for each thread, in a pool of rows of the same kind. Only programs that run on the
// thread itself write its row, so they need no locks. They take rows from a ring of free rows, and enter
// them into an index by thread and store. The thread is identified by its number and its start time, so
// that a later thread with the same number gets another row.
//
// # Who may use it
//
// Only omis/place/kernel and omis/place/kernel/persist import it. Of ours it imports omis, omis/node,
// omis/program, and from omis/host the packages calls, proc and tracepoint. Nothing here takes locks or
// calls the kernel, except FindLayout. Words in shared memory are read and written atomically.
package code
