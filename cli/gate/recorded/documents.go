package recorded

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"mirador/cli/gate/request"
	"mirador/mir"
)

// readDocuments reads measurement documents, one after another. Each document is of one run: its probes
// are the requests of the gate, in the same order.
func (v *Values) readDocuments(text []byte, gate *request.File) error {
	if len(gate.Metrics) == 0 {
		return nil
	}
	for _, one := range split(text) {
		decoded, err := mir.Decode(one, mir.ReplyLimits())
		if err != nil {
			return err
		}
		document, ok := decoded.(*mir.Measurement)
		if !ok {
			return fmt.Errorf("%w: it is a <%s>", errOther, decoded.Root())
		}
		probes, err := decompress(document, gate)
		if err != nil {
			return err
		}
		if err := v.addRun(probes, gate); err != nil {
			return err
		}
	}
	return nil
}

// split returns the documents of a file to which the gateway has delivered several. It leaves errors in
// the XML to the reader of documents, which reports their positions.
func split(text []byte) (documents [][]byte) {
	scanner := xml.NewDecoder(bytes.NewReader(text))
	depth, begun := 0, int64(0)
	for {
		token, err := scanner.RawToken()
		if err != nil {
			break
		}
		switch token.(type) {
		case xml.StartElement:
			depth++
			continue
		case xml.EndElement:
			depth--
		default:
			continue
		}
		if end := scanner.InputOffset(); depth == 0 {
			documents = append(documents, text[begun:end])
			begun = end
		}
	}
	if rest := bytes.TrimSpace(text[begun:]); len(rest) > 0 {
		documents = append(documents, rest)
	}
	return documents
}

// decompress returns the values of each request of the gate.
func decompress(document *mir.Measurement, gate *request.File) ([]mir.Values, error) {
	parts := []mir.Measurement{*document}
	if len(gate.Metrics) > 1 {
		parts = document.Children
	}
	if len(parts) != len(gate.Metrics) {
		return nil, fmt.Errorf("%w: it has values of %d probes, and the gate has %d requests; they must be the same in the same order", errOther, len(parts), len(gate.Metrics))
	}
	all := make([]mir.Values, len(parts))
	for i, part := range parts {
		part.ProbeID = ""
		values, err := mir.Decompress([]mir.Values{{Metrics: gate.Metrics[i]}}, &part)
		if err != nil {
			return nil, fmt.Errorf("%w: request %d: %w", errOther, i+1, err)
		}
		all[i] = values[0]
	}
	return all, nil
}

// addRun adds the values of a document: for numbers and amounts the sum over all threads, for times the
// average over the threads.
func (v *Values) addRun(probes []mir.Values, gate *request.File) error {
	for i, l := range gate.Limits {
		if l.Benchmark != "" {
			continue
		}
		sum, n := 0.0, 0
		for _, t := range probes[l.Request].Tuples {
			value, ok := valueOf(t, l)
			if t.Metric == l.Index && ok {
				sum, n = sum+value, n+1
			}
		}
		if n > 0 && l.Of != (request.Of{}) {
			sum /= float64(n)
		}
		if n == 0 {
			continue
		}
		if err := v.add(i, sum); err != nil {
			return err
		}
	}
	return nil
}

// valueOf returns the statistic of a value that the limit is about: if the value has percentiles, the
// one of the limit.
func valueOf(t mir.Tuple, l request.Limit) (float64, bool) {
	text := t.Value
	if t.Spread != nil && l.Of.Percent > 0 {
		text = ""
		for _, p := range t.Spread.Percentiles {
			if math.Abs(p.Of-l.Of.Percent) < 1e-9 {
				text = p.Value
			}
		}
	}
	value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return value, err == nil
}

// WriteDocuments writes the values of a gate as measurement documents, one for each run.
func (v *Values) WriteDocuments(w io.Writer, gate *request.File) error {
	runs := 0
	for _, values := range v.ByLimit {
		runs = max(runs, len(values))
	}
	for n := range runs {
		document := &mir.Measured{}
		for i, metrics := range gate.Metrics {
			document.Probes = append(document.Probes, mir.Values{ProbeID: fmt.Sprintf("request-%d", i+1), Metrics: metrics})
		}
		for i, l := range gate.Limits {
			if l.Benchmark != "" {
				continue
			}
			values := v.ByLimit[i]
			p := &document.Probes[l.Request]
			// Two limits of a metric share its value.
			known := slices.ContainsFunc(p.Tuples, func(t mir.Tuple) bool { return t.Metric == l.Index })
			if n < len(values) && !known {
				p.Tuples = append(p.Tuples, mir.Tuple{Metric: l.Index, Value: strconv.FormatFloat(values[n], 'f', -1, 64)})
			}
		}
		if err := mir.Encode(w, document); err != nil {
			return err
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	return nil
}
