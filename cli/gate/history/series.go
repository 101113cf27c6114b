package history

import (
	"fmt"

	"mirador/cli/gate/request"
	"mirador/cli/gate/verdict"
)

// Point is a value of a series: the median of an entry's runs.
type Point struct {
	About
	Value float64
}

// Series are the values of a metric over time.
type Series struct {
	Name, Unit string
	Points     []Point
	Segments   []Segment // without gaps; see Divide
}

// SeriesOf returns the series of a history, in the order of the latest gate file, with their
// segments. Entries of other machines are left out, unless machine is ""; left is their number.
func SeriesOf(entries []Entry, machine string) (all []Series, left int) {
	at := map[string]int{}
	for n := len(entries) - 1; n >= 0; n-- {
		e := entries[n]
		if machine != "" && e.Machine != machine {
			left++
			continue
		}
		here := map[string]bool{}
		for i := range e.Gate.Limits {
			l := &e.Gate.Limits[i]
			name := NameOf(l)
			if here[name] || len(e.Values.ByLimit[i]) == 0 {
				continue
			}
			here[name] = true
			if _, ok := at[name]; !ok {
				at[name] = len(all)
				all = append(all, Series{Name: name, Unit: l.Unit})
			}
			s := &all[at[name]]
			s.Points = append([]Point{{e.About, verdict.Median(e.Values.ByLimit[i])}}, s.Points...)
		}
	}
	for i := range all {
		all[i].Segments = Divide(all[i].values())
	}
	return all, left
}

func (s *Series) values() (list []float64) {
	for _, p := range s.Points {
		list = append(list, p.Value)
	}
	return list
}

// Stable returns the values of the last segment.
func (s *Series) Stable() []float64 {
	if len(s.Segments) == 0 {
		return nil
	}
	last := s.Segments[len(s.Segments)-1]
	return s.values()[last.From:last.To]
}

// NameOf returns the name of the series to which a limit belongs.
func NameOf(l *request.Limit) string {
	name := l.Metric
	if of := l.Of.String(); of != "" {
		name += " " + of
	}
	if unit := l.Region + l.Benchmark; unit != "" {
		name += fmt.Sprintf(" of %s", unit)
	}
	return name
}
