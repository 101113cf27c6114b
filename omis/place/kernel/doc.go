// Package kernel is the placement "kernel": programs that count and measure time run
// as eBPF programs at uprobes (program.Placer). The thread is not held and nobody is
// woken up; a hit costs two thirds of a microsecond where the kernel emulates the
// instruction that the uprobe displaces, and several times as much where it has to
// step over it. At events of the kernel itself, system calls and scheduling, they run
// as programs at its tracepoints.
//
// # What a program consists of
//
// All that do the same share one program of the kernel, its shape. What is different is
// in spots, of a slab of memory that the monitor shares with its programs; the cookie of
// a uprobe leads to its spot. Up to a thousand uprobes are set and taken out by one link,
// as a bunch. Where some of a bunch are taken out, the others are set anew.
//
// The rows of stores lie in pools, memory that is shared as well. A thread finds its row
// by an index, by its number and its start time, so that a number that is used again is
// another row. Only the thread itself writes it, so nothing is lost and nothing locked;
// the monitor reads it where it lies. A reset begins a new epoch: each thread clears its
// own row when it comes by. The records of traces lie behind the rows of their threads.
//
// # Life
//
// Programs, tables and uprobes belong to file descriptors of the monitor. When it
// dies, by whatever signal, the kernel takes the uprobes out and puts the code
// right; the target notices nothing. But for those that are kept (program.Keeper): their
// objects are files of package pins as well, and go on; a book says what they are. The
// next monitor takes them over while they run (inherit.go). While the monitor lives, a
// process of its own that is not killed with it sets uprobes and takes them out (package
// registrar). A process that executes another program is told by a tracepoint, since its
// uprobes would be set again where the new program happens to map the same file. The
// child of a fork is not counted.
//
// Only cli imports this package, to hand a Placer to the engine along with the node.
// It imports omis, and what it takes from omis/host/calls, omis/host/proc and
// omis/host/tracepoint, and from omis/code/x86/branch and omis/code/x86/landing. A
// Placer and its stores may be used from any goroutine; one goroutine of its own
// moves rows of ended threads out of stores that fill up.
package kernel
