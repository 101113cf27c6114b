//go:build linux && amd64

package code

import (
	"fmt"
	"slices"

	"mirador/omis/node"
	"mirador/omis/program"
)

// Step is one operation of a program together with the row kind and the number of its store.
type Step struct {
	program.Op
	Cell Unit
	Kind program.StoreKind

	// The store that program.ClockCell reads; zero for other clocks.
	Source     Unit
	SourceKind program.StoreKind
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
	Clocks  []program.Clock // for each step; those of elapsed time are not distinguished
	Kinds   []program.StoreKind
	Sources []program.StoreKind // for each step; nil if no step has a source
	Loads   []program.Load      // for each step; nil if no step loads anything
	Threads int                 // how many threads the program is limited to; 0: not limited
	When    node.Condition      // of the flags
}

// ShapeOf is the shape of a program.
func ShapeOf(steps []Step, threads int, when node.Condition) *Shape {
	s := &Shape{Threads: threads, When: when}
	for _, step := range steps {
		s.Steps, s.Clocks, s.Kinds = append(s.Steps, stepOf(step.Op)), append(s.Clocks, clockOf(step.Op)), append(s.Kinds, step.Kind)
	}
	s.Loads, s.Sources = loadsOf(steps), sourcesOf(steps)
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

func (s *Shape) String() string {
	return fmt.Sprint(s.Steps, s.Clocks, s.Kinds, s.Loads, s.Sources, s.Threads, s.When)
}

// stops reports whether a step ends an interval of a clock.
func (s *Shape) stops(clock program.Clock) bool {
	for i, op := range s.Steps {
		if (op == program.OpStop || op == stopWhole) && s.Clocks[i] == clock {
			return true
		}
	}
	return false
}

// takesNotes reports whether a step appends a record to a trace.
func (s *Shape) takesNotes() bool { return slices.Contains(s.Steps, program.OpTrace) }
