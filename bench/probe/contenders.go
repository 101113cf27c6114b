//go:build linux && amd64

package probe

import (
	"mirador/bench/subject"
)

// The names of the references that are no other tools.
const (
	bareEBPF      = "bare eBPF"
	bareReturning = "bare eBPF, uretprobe"
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

func onlyTimes(t subject.Task) string {
	if t.Timed {
		return ""
	}
	return "to count, neither a clock nor a return is needed"
}
