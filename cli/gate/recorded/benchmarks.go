package recorded

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"

	"mirador/cli/gate/request"
)

// processors is the suffix with GOMAXPROCS that testing adds to names.
var processors = regexp.MustCompile(`-\d+$`)

// readBenchmarks reads results of benchmarks, one value from each line.
func (v *Values) readBenchmarks(text []byte, path string, gate *request.File) error {
	reader := benchfmt.NewReader(bytes.NewReader(text), path)
	found := false
	for reader.Scan() {
		switch rec := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			return rec
		case *benchfmt.Result:
			found = true
			if err := v.addResult(rec, gate); err != nil {
				return err
			}
		}
	}
	if err := reader.Err(); err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("it contains no result of a benchmark, and is no measurement document")
	}
	return nil
}

func (v *Values) addResult(rec *benchfmt.Result, gate *request.File) error {
	name := rec.Name.String()
	for _, value := range rec.Values { // the reader does not convert the units of infinite values
		if err := finite(value.Value); err != nil {
			return err
		}
	}
	for i, l := range gate.Limits {
		if l.Benchmark == "" || l.Benchmark != name && l.Benchmark != processors.ReplaceAllString(name, "") {
			continue
		}
		value, ok := rec.Value(l.Metric)
		if l.Unit == "ms" {
			value *= 1e3
		}
		if !ok {
			continue
		}
		if err := v.add(i, value); err != nil {
			return err
		}
	}
	return nil
}

// Sampled are the values of a result, for the Go benchmark format.
type Sampled struct {
	Region, Metric, Of, Unit string
	Base, Head               []float64 // in the unit; of each run or start
}

// WriteBenchmarks writes results in the Go benchmark format. The configuration key "side" says
// whether a result is of base or of head.
func WriteBenchmarks(w io.Writer, gate string, results []Sampled) error {
	writer := benchfmt.NewWriter(w)
	for _, side := range []string{"base", "head"} {
		for _, one := range results {
			values := one.Head
			if side == "base" {
				values = one.Base
			}
			unit, scale := one.benchmarkUnit()
			for _, v := range values {
				rec := &benchfmt.Result{Name: benchfmt.Name(one.name()), Iters: 1, Values: []benchfmt.Value{{Value: v * scale, Unit: unit}}}
				rec.SetConfig("gate", gate)
				rec.SetConfig("side", side)
				for i := range rec.Config {
					rec.Config[i].File = true
				}
				if err := writer.Write(rec); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// name returns the name of a result, with its parts as key=value, as the format recommends.
func (s *Sampled) name() string {
	parts := []string{s.Metric}
	if strings.Contains(s.Metric, "/") { // the unit of a benchmark
		parts = []string{s.Region}
	} else if s.Region != "" {
		parts = append(parts, "region="+s.Region)
	}
	if s.Of != "" {
		parts = append(parts, "of="+s.Of)
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return '_'
		}
		return r
	}, strings.Join(parts, "/"))
}

func (s *Sampled) benchmarkUnit() (unit string, scale float64) {
	switch {
	case strings.Contains(s.Metric, "/"): // of a benchmark already
		return s.Metric, map[bool]float64{true: 1e-3, false: 1}[s.Unit == "ms"]
	case s.Unit == "ms" && s.Of != "":
		return "sec/op", 1e-3
	case s.Unit == "ms":
		return "sec", 1e-3
	case s.Unit == "B":
		return "B", 1
	}
	return "events", 1
}
