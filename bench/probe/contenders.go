//go:build linux && amd64

package probe

import (
	"mirador/bench/subject"
)

// The names of the references that are no other tools.
const (
	bareEBPF      = "bare eBPF"
	bareReturning = "bare eBPF, uretprobe"
	twoReadings   = "two readings of the clock"
)

// ours are the placements.
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

// sampling times only some calls, where that makes a difference. What it says of the
// others it takes many calls to know.
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

// references are the least that eBPF can do.
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

// reading is the least that an ordered clock costs.
func (b *Bench) reading() subject.Contender {
	return subject.Contender{
		Name: twoReadings, Suits: onlyTimes,
		Start: func(subject.Task) (*subject.Standing, error) { return startFenced(b.program) },
	}
}

// startFenced starts a program one of whose functions has the readings of an ordered clock
// compiled in. Nobody probes it, and it says nothing of what it reads.
func startFenced(program *subject.Program) (*subject.Standing, error) {
	t, err := startOwn(program)
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
