package mir

import (
	"strconv"
	"strings"
)

// Percentile is a percentile of the execution times, with its error. It is an element of the
// gateway's namespace, inside the element of the value.
type Percentile struct {
	Of           float64 // percent
	Value, Error string  // in the unit of the metric
}

// Spread is the distribution of the times from which a value was computed.
type Spread struct {
	Percentiles []Percentile // in the order of the request
}

// MostPercentiles is the maximum number of percentiles in a request.
const MostPercentiles = 16

// percentiles returns the requested percentages, none if the attribute is absent.
func (f *findings) percentiles(e Element) []float64 {
	a, ok := ours(e, "percentiles")
	if !ok {
		return nil
	}
	words := strings.FieldsFunc(a.Value, func(r rune) bool { return strings.ContainsRune(blanks, r) })
	percent := make([]float64, len(words))
	for i, word := range words {
		if percent[i], ok = percentage(word); !ok {
			f.add(a.Pos, "percentiles is %s: %s is no percentage from 0 to 100; a list was expected, such as 50 99 99.9", Quote(a.Value), Quote(word))
			return nil
		}
	}
	if len(words) == 0 || len(words) > MostPercentiles {
		f.add(a.Pos, "percentiles is %s; 1 to %d percentages were expected, such as 50 99 99.9", Quote(a.Value), MostPercentiles)
		return nil
	}
	return percent
}

// percentage parses a decimal from 0 to 100.
func percentage(text string) (percent float64, ok bool) {
	percent, err := strconv.ParseFloat(text, 64)
	return percent, isDecimal(text) && err == nil && text[0] != '-' && percent <= 100
}

// percentile reads one percentile of a measurement.
func (f *findings) percentile(e Element) Percentile {
	of := f.required(e, "of")
	percent, ok := percentage(of)
	if !ok && of != "" {
		a, _ := e.Attribute("of")
		f.add(a.Pos, "of is %s; a percentage from 0 to 100 was expected", Quote(of))
	}
	return Percentile{percent, f.decimal(e, "value"), f.decimal(e, "error")}
}

// with appends a percentile; s may be nil.
func (s *Spread) with(p Percentile) *Spread {
	if s == nil {
		s = &Spread{}
	}
	s.Percentiles = append(s.Percentiles, p)
	return s
}

// percentages writes the requested percentages. The namespace is already declared.
func (w *writer) percentages(percent []float64) {
	words := make([]string, len(percent))
	for i, p := range percent {
		words[i] = Decimal(p)
	}
	w.optional("gateway:percentiles", strings.Join(words, " "))
}

// spread writes the percentiles of a measurement. The namespace is already declared.
func (w *writer) spread(s *Spread) {
	if s == nil {
		return
	}
	for _, p := range s.Percentiles {
		w.begin("gateway:percentile")
		w.attribute("of", Decimal(p.Of))
		w.attribute("value", p.Value)
		w.attribute("error", p.Error)
		w.end()
	}
}
