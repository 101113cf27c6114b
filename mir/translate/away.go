package translate

import (
	"slices"

	"mirador/omis"
)

// Join adds the places of a plan for the same request that its own lack, in other processes or in libraries that
// processes have opened again.
func (p *Plan) Join(more *Plan) *Plan {
	q := *p
	q.Places = slices.Concat(p.Places, more.Places)
	if len(p.away) > 0 {
		q.Places = slices.DeleteFunc(q.Places, func(pl Place) bool { return len(pl.Processes) == 0 })
		slices.SortStableFunc(q.Places, func(a, b Place) int { return sortsLast(a.Exit) - sortsLast(b.Exit) })
	}
	q.scopes = slices.Clone(p.scopes)
	for _, s := range more.scopes {
		if !slices.ContainsFunc(p.scopes, func(other scope) bool { return other.process == s.process }) {
			q.scopes = append(q.scopes, s)
		}
	}
	q.away = slices.DeleteFunc(slices.Clone(p.away), more.Measures)
	return &q
}

func sortsLast(exit bool) int {
	if exit {
		return 1
	}
	return 0
}

// Equals reports whether two places are the same, in the same processes.
func (p *Place) Equals(q Place) bool { return p.at(q) && slices.Equal(p.Processes, q.Processes) }

func (p *Place) at(q Place) bool { return p.Addr == q.Addr && p.Exit == q.Exit && p.When == q.When }

// Libraries are the methods of a plan whose region is in a library that programs close and open again.
type Libraries struct{ *Plan }

// Away reports whether a process has closed the library of the region.
func (p Libraries) Away(process omis.Token) bool { return slices.Contains(p.away, process) }

// Without returns the plan with processes that do not have the library at present.
func (p Libraries) Without(processes []omis.Token) *Plan {
	q := *p.Plan
	q.away = slices.Concat(p.away, processes)
	return &q
}

// Leave returns the plan without a process at the places in a library that it has closed. It has as many places, some
// perhaps without a process. left reports which have changed; it is nil if none has.
func (p Libraries) Leave(process omis.Token, closed func(addr uint64) bool) (q *Plan, left []bool) {
	for i, place := range p.Places {
		if !closed(place.Addr) || !slices.Contains(place.Processes, process) {
			continue
		}
		if left == nil {
			left = make([]bool, len(p.Places))
			next := *p.Plan
			q, next.Places, next.away = &next, slices.Clone(p.Places), append(slices.Clone(p.away), process)
		}
		left[i] = true
		q.Places[i].Processes = slices.DeleteFunc(slices.Clone(place.Processes), func(t omis.Token) bool { return t == process })
	}
	return q, left
}

// Again returns the part of a newer plan for the same request at places in one process that this plan lacks, nil if
// there is none.
func (p Libraries) Again(newer *Plan, process omis.Token) *Plan {
	q := *newer
	q.Places = nil
	for _, place := range newer.Places {
		known := func(old Place) bool {
			return old.at(place) && slices.Contains(old.Processes, process)
		}
		if slices.Contains(place.Processes, process) && !slices.ContainsFunc(p.Places, known) {
			place.Processes = []omis.Token{process}
			q.Places = append(q.Places, place)
		}
	}
	if len(q.Places) == 0 {
		return nil
	}
	return &q
}
