package mir

import (
	"strconv"
	"strings"
)

// Sample describes a value of which only a part of the executions was timed. Its attributes
// are in the gateway's namespace, beside the value.
type Sample struct {
	Count int64  // all executions of the region
	Timed int64  // number of executions that were timed and have ended
	Sum   string // estimated total time of all executions; "" if none was timed
	Error string // the standard error of Sum; "" if unknown
	// Unmatched is the number of ends without a beginning, in a region from one unit to another. There
	// Count is the number of beginnings, and Timed that of the executions that have both.
	Unmatched int64
}

// MostOneIn is the maximum of OneIn.
const MostOneIn = 1_000_000

// sample returns N of the attribute sample="1/N", 0 if it is absent.
func (f *findings) sample(e Element) int64 {
	a, ok := ours(e, "sample")
	if !ok {
		return 0
	}
	digits, one := strings.CutPrefix(strings.Trim(a.Value, blanks), "1/")
	n, err := strconv.ParseUint(digits, 10, 63)
	if !one || err != nil || n < 1 || n > MostOneIn {
		f.add(a.Pos, "sample is %s; the part of the executions to be timed was expected, from 1/1 to 1/%d, such as 1/100", Quote(a.Value), MostOneIn)
		return 0
	}
	return int64(n)
}

// sampled reads the sample of a measurement; nil if there is none.
func (f *findings) sampled(e Element) *Sample {
	if _, ok := ours(e, "count"); !ok {
		return nil
	}
	sum, _ := ours(e, "sum")
	deviation, _ := ours(e, "error")
	return &Sample{f.whole(e, "count"), f.whole(e, "timed"), f.ourDecimal(sum), f.ourDecimal(deviation), f.whole(e, "unmatched")}
}

// whole returns an attribute of the gateway's namespace that is a whole number.
func (f *findings) whole(e Element, name string) int64 {
	a, ok := ours(e, name)
	n, err := strconv.ParseUint(a.Value, 10, 63)
	if ok && err != nil {
		f.add(a.Pos, "%s is %s; a whole number was expected", name, Quote(a.Value))
	}
	return int64(n)
}

func (f *findings) ourDecimal(a Attribute) string {
	if a.Value != "" && !isDecimal(a.Value) {
		f.add(a.Pos, "%s is %s; a decimal number was expected", a.Name, Quote(a.Value))
	}
	return a.Value
}

// sample writes a sample. The namespace is already declared.
func (w *writer) sample(s *Sample) {
	if s == nil {
		return
	}
	w.attribute("gateway:count", strconv.FormatInt(s.Count, 10))
	w.attribute("gateway:timed", strconv.FormatInt(s.Timed, 10))
	w.optional("gateway:sum", s.Sum)
	w.optional("gateway:error", s.Error)
	if s.Unmatched > 0 {
		w.attribute("gateway:unmatched", strconv.FormatInt(s.Unmatched, 10))
	}
}
