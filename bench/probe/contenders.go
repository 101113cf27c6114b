//go:build linux && amd64

package probe

import (
	"mirador/bench/subject"
)

// Names of the references that are not tools.
const (
	bareEBPF      = "bare eBPF"
	bareReturning = "bare eBPF, uretprobe"
	twoReadings   = "two readings of the clock"
)

// ours returns the placements as contenders.
func (b *Bench) ours() []subject.Contender {
	var list []subject.Contender
	for _, m := range b.monitors {
		list = append(list, subject.Contender{
			Name: m.placement, Slow: m.placement == trap,
			Start: func(t subject.Task) (*subject.Standing, error) { return m.start(b.program, t, ordered) },
		})
		if m.placement == inCode {
			list = append(list, subject.Contender{
				Name: inCodeFast, Suits: onlyTimes,
				Start: func(t subject.Task) (*subject.Standing, error) { return m.start(b.program, t, fast) },
			})
		}
	}
	return list
}

// sampling returns the placement that can skip the clock for calls that it does not time,
// with sampling.
func (b *Bench) sampling() []subject.Contender {
	for _, m := range b.monitors {
		if m.placement == inCode {
			return []subject.Contender{{
				Name: inCodeSome, Suits: onlyTimes,
				Start: func(t subject.Task) (*subject.Standing, error) { return m.start(b.program, t, sampled) },
			}}
		}
	}
	return nil
}

// references returns the minimum that eBPF can do.
func (b *Bench) references() []subject.Contender {
	return []subject.Contender{
		{Name: bareEBPF, Start: func(t subject.Task) (*subject.Standing, error) { return b.bare.start(b.program, t) }},
		{
			Name:  bareReturning,
			Suits: onlyTimes,
			Start: func(t subject.Task) (*subject.Standing, error) { return b.bare.startReturning(b.program, t) },
		},
	}
}

// reading returns the minimum that an ordered clock costs.
func (b *Bench) reading() subject.Contender {
	return subject.Contender{
		Name: twoReadings, Suits: onlyTimes,
		Start: func(subject.Task) (*subject.Standing, error) { return startFenced(b.program) },
	}
}

// startFenced starts a program with a function into which the readings of an ordered
// clock are compiled. It is not probed, and does not report its readings.
func startFenced(program *subject.Program) (*subject.Standing, error) {
	t, err := program.StartCopy()
	if err != nil {
		return nil, err
	}
	return &subject.Standing{Target: t, Function: "fenced", Stop: t.End}, nil
}

func onlyTimes(t subject.Task) string {
	if t.Timed {
		return ""
	}
	return "to count, neither a clock nor a return is needed"
}
