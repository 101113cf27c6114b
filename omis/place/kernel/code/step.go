//go:build linux && amd64

package code

import (
	"fmt"
	"slices"

	"mirador/omis/program"
)

// Step is one operation of a program together with the row kind and the number of its store.
type Step struct {
	program.Op
	Cell Unit
	Kind program.StoreKind
}

// Thread identifies a thread of a process for as long as the machine runs: procfs reports the
// start in hundredths of a second.
type Thread struct {
	TID   int
	Ticks uint64
}

// NsPerTick is a hundredth of a second: USER_HZ is 100 on x86.
const NsPerTick = 10_000_000

// Shape is what programs at different addresses have in common, so that one eBPF program serves
// all of them. What differs is in a spot for each address.
type Shape struct {
	Steps   []program.Operation
	CPU     []bool // for each step, whether it reads the CPU time
	Kinds   []program.StoreKind
	Loads   []program.Load // for each step; nil if no step loads anything
	Threads int            // how many threads the program is limited to; 0: not limited
}

// ShapeOf is the shape of a program.
func ShapeOf(steps []Step, threads int) *Shape {
	s := &Shape{Threads: threads}
	for _, step := range steps {
		s.Steps, s.CPU, s.Kinds = append(s.Steps, stepOf(step.Op)), append(s.CPU, takesCPU(step.Op)), append(s.Kinds, step.Kind)
	}
	s.Loads = loadsOf(steps)
	return s
}

// loadsOf is what each step loads; nil if no step loads anything.
func loadsOf(steps []Step) []program.Load {
	if !slices.ContainsFunc(steps, func(s Step) bool { return s.Load.IsLoaded() }) {
		return nil
	}
	list := make([]program.Load, len(steps))
	for i, s := range steps {
		list[i] = s.Load
	}
	return list
}

func (s *Shape) String() string { return fmt.Sprint(s.Steps, s.CPU, s.Kinds, s.Loads, s.Threads) }

// stops reports whether a step ends an interval of CPU time, or of elapsed time if cpu is false.
func (s *Shape) stops(cpu bool) bool {
	for i, op := range s.Steps {
		if op == program.OpStop && s.CPU[i] == cpu {
			return true
		}
	}
	return false
}

// takesNotes reports whether a step appends a record to a trace.
func (s *Shape) takesNotes() bool { return slices.Contains(s.Steps, program.OpTrace) }
