// Package peers makes other tools count and time functions and system calls, to compare
// probes with them: bpftrace, perf, gdb with breakpoints, gdb with gdbserver's fast
// tracepoints, uftrace, lttng-ust and strace. It uses each tool as the tool's manual
// says. A tool that is not installed or does not work on this machine is a
// subject.Missing with the reason.
//
// Only packages below bench import it. Standing.Stop ends every process that it started.
package peers
