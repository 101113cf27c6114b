// Package peers has other tools count and time functions and system calls, so that
// probes can be measured beside theirs: bpftrace, perf, gdb with breakpoints, gdb with
// gdbserver's fast tracepoints, uftrace, lttng-ust and strace. Each is used as its
// manual says. A tool that is not installed or does not run on this machine is a
// subject.Missing that says why.
//
// Only packages below bench import it. Whatever it starts ends with Standing.Stop.
package peers
