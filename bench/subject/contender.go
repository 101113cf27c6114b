//go:build linux && amd64

package subject

import "errors"

// Task is what a contender is to do: count a function's calls, or measure how long they take.
type Task struct {
	Function string
	Timed    bool
}

func (t Task) String() string {
	if t.Timed {
		return "time"
	}
	return "count"
}

// Contender is a way to probe functions.
type Contender struct {
	Name string
	// Suits says why it cannot do a task, whatever the machine; "": it can. Nil: it
	// can do all.
	Suits func(Task) string
	// Slow tells that a hit takes so long that few of them must do.
	Slow bool
	// Start probes a target of its own.
	Start func(Task) (*Standing, error)
}

// Standing is a probe that stands, until Stop is called.
type Standing struct {
	Target   *Target
	Function string // which one is probed: the task's, or one that is compiled like it
	// Mean is the mean duration that the contender reports in the end, in nanoseconds,
	// of calls since it began, or since Begin was called. Nil: it reports none.
	Mean func() (float64, error)
	// Begin forgets what was measured before. Nil: what Mean reports is of all calls.
	Begin func() error
	// Stop takes the probe away and ends the target. It is called once.
	Stop func() error
}

// Missing is why a contender cannot be had on this machine. Nothing has failed.
type Missing struct{ Why string }

func (m *Missing) Error() string { return m.Why }

// WhyMissing tells a contender that is missing from a failure.
func WhyMissing(err error) (why string, missing bool) {
	var m *Missing
	if errors.As(err, &m) {
		return m.Why, true
	}
	return "", false
}
