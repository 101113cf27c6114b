package doctor

import (
	"context"
	"os"
)

// State is the outcome of a check.
type State string

const (
	OK      State = "ok"
	Limited State = "limited" // works in part, or for some processes
	Missing State = "missing"
)

// Check is a row of the doctor's table.
type Check struct {
	Name  string `json:"name" xml:"name,attr"`
	State State  `json:"state" xml:"state,attr"`
	Why   string `json:"why" xml:"why"`
	Do    string `json:"do,omitempty" xml:"do,omitempty"` // advice if the state is not OK
	Basic bool   `json:"basic" xml:"basic,attr"`          // nothing works if this check fails
}

// finding is the result of a check.
type finding struct {
	state State
	why   string
	do    string
}

func fine(why string) finding             { return finding{state: OK, why: why} }
func limited(why, do string) finding      { return finding{state: Limited, why: why, do: do} }
func missing(why, do string) finding      { return finding{state: Missing, why: why, do: do} }
func failed(err error, do string) finding { return missing(err.Error(), do) }

// checks contains all checks, in the order in which they are printed.
var checks = []struct {
	name  string
	basic bool
	run   func(context.Context) finding
}{
	{"ptrace, own processes", true, traceChild},
	{"ptrace, other processes", false, traceStranger},
	{"process_vm_readv", true, readChild},
	{"/proc/PID/mem, write to text", true, writeChild},
	{"seccomp", false, seccomp},
	{"bpf", false, bpf},
	{"btf", false, kernelTypes},
	{"perf, software events", false, perfSoftware},
	{"perf, hardware counters", false, perfHardware},
	{"uprobes", false, uprobes},
	{"uprobes, on nops", false, nops},
	{"programs in the kernel", false, placement},
	{"events of the kernel", false, events},
	{"code in programs", false, ticks},
	{"programs that outlive a gateway", false, outliving},
	{"left behind", false, left},
	{"cost of a probe's hit", false, costs},
	{"tracefs", false, tracefs},
	{"criu", false, criu},
	{"pvm", false, pvm},
	{"open mpi", false, openMPI},
	{"mpich", false, mpich},
	{"jdk", false, jdk},
	{"c compiler", false, compiler},
}

// Examine runs all checks, and calls done after each.
func Examine(ctx context.Context, done func(Check)) []Check {
	var found []Check
	for _, c := range checks {
		f := c.run(ctx)
		check := Check{Name: c.name, State: f.state, Why: f.why, Do: f.do, Basic: c.basic}
		done(check)
		found = append(found, check)
	}
	return found
}

// Healthy reports whether the basic checks succeeded.
func Healthy(found []Check) bool {
	for _, c := range found {
		if c.Basic && c.State == Missing {
			return false
		}
	}
	return true
}

// advice tells how to give a gateway the capabilities that it lacks. Root may lack them as well, in
// a container or if a unit of systemd removes them.
func advice(capabilities string) string { return adviceTo(os.Geteuid(), capabilities) }

func adviceTo(uid int, capabilities string) string {
	if uid == 0 {
		return "give the container or the service " + capabilities
	}
	return "run the gateway as root, or with " + capabilities
}
