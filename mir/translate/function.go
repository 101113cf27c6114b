package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mirador/mir"
	"mirador/omis"
	"mirador/sir"
)

// Some metrics are measured at functions of libraries: each call is an event, as a system call
// is. The functions are found in all modules of a process, by their names.

// InCode reports whether a request concerns places in the code, so that translating it needs
// the modules of the processes.
func InCode(r *mir.InstrRequest) bool {
	return r.Region != nil || slices.ContainsFunc(r.Metrics, func(asked mir.Metric) bool {
		m, _ := metric(asked.Name, false)
		return len(m.funcs) > 0
	})
}

// ProgramOf returns the program that a request names as the prefix of its region. It returns ""
// if there is no prefix, or if a metric is measured at functions, which may be in any program.
func ProgramOf(r *mir.InstrRequest) string {
	if r.Region == nil || InCode(&mir.InstrRequest{Metrics: r.Metrics}) {
		return ""
	}
	program, _, prefixed := strings.Cut(cmp.Or(r.Region.From, r.Region.To), ":")
	if !prefixed {
		return ""
	}
	return program
}

// findFunctions finds where the functions of the metrics begin and end.
func (p *Plan) findFunctions(r *mir.InstrRequest, t *Targets) (errs Errors) {
	for i := range p.Metrics {
		m := &p.Metrics[i]
		if len(m.funcs) == 0 {
			continue
		}
		for at, name := range m.funcs {
			amount := ""
			if m.amount {
				amount = m.params[at]
			}
			if err := m.findFunction(name, amount, p.processTokens(), t); err != nil {
				errs = append(errs, Errorf(CannotBeDone, place(r), "%s: %v", m.Name, err))
			}
		}
		if len(m.begin) == 0 && len(errs) == 0 {
			errs = append(errs, Errorf(CannotBeDone, place(r), "%s is measured at calls of %s, and no module of the program has such a function", m.Name, strings.Join(m.funcs, ", ")))
		}
	}
	return errs
}

// processTokens returns the measured processes.
func (p *Plan) processTokens() (list []omis.Token) {
	for _, s := range p.scopes {
		list = append(list, s.process)
	}
	return list
}

// findFunction adds the beginnings and ends of a function to the events of the metric. amount is the
// parameter to add.
func (m *Metric) findFunction(name string, amount string, processes []omis.Token, t *Targets) error {
	f := region{name: name, entry: true, exit: true}
	f.copies = t.gather(func(m *Module) []*sir.Region { return m.Units.ByName(name) })
	places, err := f.places(processes, m.source == betweenEvents)
	if err != nil {
		return fmt.Errorf("the function %s: %w", name, err)
	}
	for _, at := range places {
		if at.Exit {
			m.end = addEvent(m.end, at, "")
		} else {
			m.begin = addEvent(m.begin, at, amount)
		}
	}
	return nil
}

// addEvent adds the event that a thread reaches a place, for the processes that have no event at
// this address yet: a function with several names is found once for each of them.
func addEvent(events []event, at Place, amount string) []event {
	for _, e := range events {
		if e.place.Addr == at.Addr {
			at.Processes = slices.DeleteFunc(at.Processes, func(p omis.Token) bool { return slices.Contains(e.place.Processes, p) })
		}
	}
	if len(at.Processes) == 0 {
		return events
	}
	return append(events, event{service: reached, place: at, amount: amount})
}
