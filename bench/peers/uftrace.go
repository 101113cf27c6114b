//go:build linux && amd64

package peers

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"mirador/bench/subject"
)

// uftrace starts the program under uftrace, which patches the function in memory; the
// program needs no preparation.
func (p *Peers) uftrace(task subject.Task) (*subject.Standing, error) {
	path, err := find("uftrace")
	if err != nil {
		return nil, err
	}
	program, err := p.Program.Copy()
	if err != nil {
		return nil, err
	}
	data := program.Path + ".uftrace"
	t, err := program.StartBy(exec.Command(path, "record", "--no-libcall", "--no-event", "--patch", task.Function, "--data", data, program.Path))
	if err != nil {
		return nil, &subject.Missing{Why: "uftrace does not run here: " + err.Error()}
	}
	return &subject.Standing{
		Target: t, Function: task.Function, Stop: t.End,
		Mean: func() (float64, error) {
			// The data is complete when the program has ended; Stop may end it again.
			if err := t.End(); err != nil {
				return 0, err
			}
			out, err := output(exec.Command(path, "report", "--data", data, "--avg-total"))
			if err != nil {
				return 0, err
			}
			return meanOfReport(out, task.Function)
		},
	}, nil
}

// meanOfReport finds the line of a function, which begins with the mean duration and its
// unit.
func meanOfReport(out, function string) (float64, error) {
	units := map[string]float64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) < 3 || words[len(words)-1] != function {
			continue
		}
		mean, err := strconv.ParseFloat(words[0], 64)
		if unit := units[words[1]]; err == nil && unit != 0 {
			return mean * unit, nil
		}
	}
	return 0, fmt.Errorf("uftrace reports no %s, but %q", function, out)
}
