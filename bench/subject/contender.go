//go:build linux && amd64

package subject

import "errors"

// Task is to count a function's calls, or to measure their durations.
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
	// Suits returns why the contender cannot do a task on any machine, "" if it can. If
	// Suits is nil, it can do all.
	Suits func(Task) string
	// Slow reports that a hit takes so long that only few can be measured.
	Slow bool
	// Start probes a target of its own.
	Start func(Task) (*Standing, error)
}

// Standing is an active probe, until Stop is called.
type Standing struct {
	Target   *Target
	Function string // the probed function: the task's, or one that is compiled like it
	// Mean returns the mean duration that the contender reports, in nanoseconds, of calls
	// since the start or since Begin. It is nil if the contender reports none.
	Mean func() (float64, error)
	// Begin discards earlier measurements. If it is nil, Mean covers all calls.
	Begin func() error
	// Stop removes the probe and ends the target. It is called once.
	Stop func() error
}

// Missing is the reason why a contender is not available on this machine. It is not a
// failure.
type Missing struct{ Why string }

func (m *Missing) Error() string { return m.Why }

// WhyMissing reports whether err means that a contender is missing, and why.
func WhyMissing(err error) (why string, missing bool) {
	var m *Missing
	if errors.As(err, &m) {
		return m.Why, true
	}
	return "", false
}
