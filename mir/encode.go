package mir

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Encoder writes documents: children in the order of MIR's DTD, attributes
// escaped, characters that XML cannot carry replaced by U+FFFD. It is a value
// without state.
type Encoder struct {
	// Indent is put before every element, once for each level; "" writes a
	// document on a single line.
	Indent string
}

// Encode writes a document while it walks over it, and a line feed.
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
	case *Explain:
		out.explain(d)
	default:
		return fmt.Errorf("cannot write a document of type %T: it is none of MIR's", d)
	}
	return out.finish()
}

// Encode writes a document on a single line.
func Encode(w io.Writer, d Document) error { return Encoder{}.Encode(w, d) }

// Marshal is a document on a single line.
func Marshal(d Document) ([]byte, error) {
	var text bytes.Buffer
	err := Encode(&text, d)
	return text.Bytes(), err
}

// Decimal writes a number the way MIR carries values (MIR 9: decimal, which
// has no exponent): as short as it can be read back exactly. What is not a
// number is "", a value that cannot be had.
func Decimal(number float64) string {
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return ""
	}
	return strconv.FormatFloat(number, 'f', -1, 64)
}

// Rounded is a number with so many digits behind the point; a number that is too large to
// have them is what it was.
func Rounded(number float64, digits int) float64 {
	unit := math.Pow10(digits)
	if whole := math.Round(number * unit); math.Abs(whole) < 1<<50 {
		return whole / unit
	}
	return number
}
