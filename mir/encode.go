package mir

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Encoder writes documents. It writes children in the order of MIR's DTD, escapes attributes,
// and replaces characters that XML cannot carry by U+FFFD. It is a value without state.
type Encoder struct {
	// Indent precedes every element, once per level; "" writes the document on a single line.
	Indent string
}

// Encode writes a document and a line feed. It streams: it does not build the text in memory.
func (e Encoder) Encode(w io.Writer, d Document) error {
	out := newWriter(w, e.Indent)
	switch d := d.(type) {
	case *SIRRequest:
		out.sirRequest(d)
	case *SnapshotRequest:
		out.snapshotRequest(d)
	case *InstrRequest:
		out.instrRequest(d)
	case *ControlRequest:
		out.controlRequest(d)
	case *Snapshot:
		out.snapshot(d)
	case *Probe:
		out.probe(d)
	case *Errors:
		out.errors(d)
	case *Measurement:
		out.measurement(d)
	case *Measured:
		out.measured(d)
	case *Explain:
		out.explain(d)
	default:
		return fmt.Errorf("cannot write a document of type %T: it is none of MIR's", d)
	}
	return out.finish()
}

// Encode writes a document on a single line.
func Encode(w io.Writer, d Document) error { return Encoder{}.Encode(w, d) }

// Marshal returns a document on a single line.
func Marshal(d Document) ([]byte, error) {
	var text bytes.Buffer
	err := Encode(&text, d)
	return text.Bytes(), err
}

// Decimal writes a number as MIR carries values (MIR 9: decimal, without an exponent), in the
// shortest form that reads back exactly. For infinities and NaN it returns "", which means
// that the value is not available.
func Decimal(number float64) string {
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return ""
	}
	return strconv.FormatFloat(number, 'f', -1, 64)
}

// Rounded rounds a number to some digits after the point. It returns numbers that are too
// large to have such digits unchanged.
func Rounded(number float64, digits int) float64 {
	unit := math.Pow10(digits)
	if whole := math.Round(number * unit); math.Abs(whole) < 1<<50 {
		return whole / unit
	}
	return number
}
