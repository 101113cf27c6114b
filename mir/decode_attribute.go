package mir

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const blanks = " \t\r\n" // white space around a number or a boolean is ignored

// required returns the value of an attribute that must be present and not empty.
func (f *findings) required(e Element, name string) string {
	a, ok := e.Attribute(name)
	switch {
	case !ok:
		f.add(e.Pos(), `<%s> has no %s; write <%[1]s %[2]s="…">`, e.Name(), name)
	case a.Value == "":
		f.add(a.Pos, "%s of <%s> is empty", name, e.Name())
	}
	return a.Value
}

// optional returns the value of an attribute, "" if it is absent.
func optional(e Element, name string) string {
	a, _ := e.Attribute(name)
	return a.Value
}

// ours returns an attribute of the gateway's namespace.
func ours(e Element, name string) (Attribute, bool) {
	for _, a := range e.Attributes() {
		if a.Space == GatewayNamespace && a.Name == name {
			return a, true
		}
	}
	return Attribute{}, false
}

// onlyOurs refuses attributes of the gateway's namespace other than the known ones on the
// root, and labels that select probes. If it ignored them, a misspelt name would go unnoticed.
func (f *findings) onlyOurs(root Element, known ...string) {
	for i := range root.tree.elements {
		e := Element{root.tree, i}
		for _, a := range e.Attributes() {
			switch {
			case a.Space != GatewayNamespace || i == root.index && slices.Contains(known, a.Name):
			case a.Name == "label" && e.is("probe") && root.is("ctrlreq"):
			case i == root.index && len(known) > 0:
				f.add(a.Pos, "%s is no attribute of the gateway's; on <%s> there are %s", Quote(a.Name), root.Name(), strings.Join(known, ", "))
			default:
				f.add(a.Pos, "%s: <%s> has no attributes of the gateway's; only <snapshotreq>, <instrreq> and <ctrlreq> have them", Quote(a.Name), quoteless(e.Tag()))
			}
		}
	}
}

// leastBudget is the smallest share, in percent, that percent does not round to 0.
const leastBudget = 0.000001

// budget returns a percentage as a fraction, 0 if the attribute is absent.
func (f *findings) budget(e Element) float64 {
	a, ok := ours(e, "budget")
	if !ok {
		return 0
	}
	text, percent := strings.CutSuffix(strings.Trim(a.Value, blanks), "%")
	share, err := strconv.ParseFloat(text, 64)
	if !percent || !isDecimal(text) || err != nil || share < leastBudget || share > 100 {
		f.add(a.Pos, "budget is %s; a share of the program's time was expected, such as 2%% or 0.5%%", Quote(a.Value))
		return 0
	}
	return share / 100
}

// The limits of a lease.
const (
	leastLease   = time.Second
	longestLease = 366 * 24 * time.Hour
)

// lease returns a time without use, 0 if the attribute is absent.
func (f *findings) lease(e Element) time.Duration {
	a, ok := ours(e, "lease")
	if !ok {
		return 0
	}
	term, err := time.ParseDuration(strings.Trim(a.Value, blanks))
	if err != nil || term < leastLease || term > longestLease {
		f.add(a.Pos, "lease is %s; a time from one second to a year was expected, such as 60s or 1h30m", Quote(a.Value))
		return 0
	}
	return term
}

// longestLabel limits the characters of a label.
const longestLabel = 64

// label returns the label of a probe, "" if the attribute is absent.
func (f *findings) label(e Element) string {
	a, ok := ours(e, "label")
	if !ok {
		return ""
	}
	strange := strings.IndexFunc(a.Value, func(r rune) bool { return r > '~' || r <= ' ' || strings.ContainsRune(`"'\\{}`, r) })
	if a.Value == "" || len(a.Value) > longestLabel || strange >= 0 {
		f.add(a.Pos, "label is %s; up to %d letters, digits and signs were expected, without blanks, quotation marks, backslashes and braces", Quote(a.Value), longestLabel)
		return ""
	}
	return a.Value
}

// longestNote limits the bytes of a note.
const longestNote = 256

// note returns the note of a probe, "" if the attribute is absent.
func (f *findings) note(e Element) string {
	a, ok := ours(e, "note")
	if !ok {
		return ""
	}
	if len(a.Value) > longestNote || strings.ContainsFunc(a.Value, unicode.IsControl) {
		f.add(a.Pos, "note is %s; up to %d bytes of text without control characters were expected", Quote(a.Value), longestNote)
		return ""
	}
	return a.Value
}

// longestKey limits the characters of a key.
const longestKey = 128

// IsKey reports whether a text can be the key of a request: printable characters of ASCII
// other than blanks.
func IsKey(text string) bool {
	strange := func(r rune) bool { return r <= ' ' || r > '~' }
	return text != "" && len(text) <= longestKey && !strings.ContainsFunc(text, strange)
}

// key returns the key of a request, "" if the attribute is absent.
func (f *findings) key(e Element) string {
	a, ok := ours(e, "key")
	if ok && !IsKey(a.Value) {
		f.add(a.Pos, "key is %s; up to %d letters, digits and signs were expected, without blanks", Quote(a.Value), longestKey)
		return ""
	}
	return a.Value
}

// probe returns what names probes in a control request: an id, or a label.
func (f *findings) probe(e Element) ProbeRef {
	label, labelled := ours(e, "label")
	if !labelled {
		return ProbeRef{ID: f.required(e, "id"), Pos: e.Pos()}
	}
	if id, named := e.Attribute("id"); named {
		f.add(label.Pos, "the probe is named by its id, %s, and by a label; write one of the two", Quote(id.Value))
	}
	return ProbeRef{Label: f.label(e), Pos: e.Pos()}
}

// fast reports whether the request asks for the fast clock.
func (f *findings) fast(e Element) bool {
	a, ok := ours(e, "clock")
	if ok && a.Value != "fast" && a.Value != "ordered" {
		f.add(a.Pos, "clock is %s; it can be ordered or fast", Quote(a.Value))
	}
	return a.Value == "fast"
}

// wish returns a boolean attribute of the gateway's namespace, false if it is absent.
func (f *findings) wish(e Element, name string) bool {
	a, ok := ours(e, name)
	if !ok {
		return false
	}
	value, _ := f.truth(a)
	return value
}

// boolean returns a boolean attribute, false if it is absent.
func (f *findings) boolean(e Element, name string) bool {
	value, _ := f.stated(e, name)
	return value
}

// stated returns a boolean attribute, and whether it is present.
func (f *findings) stated(e Element, name string) (value, there bool) {
	a, ok := e.Attribute(name)
	if !ok {
		return false, false
	}
	return f.truth(a)
}

// truth reads a boolean attribute. ok is false if its value is not a boolean.
func (f *findings) truth(a Attribute) (value, ok bool) {
	switch strings.Trim(a.Value, blanks) {
	case "true", "1":
		return true, true
	case "false", "0":
		return false, true
	}
	f.add(a.Pos, "%s is %s; it can be true or false", a.Name, Quote(a.Value))
	return false, false
}

// integer returns an attribute that is a whole number, nil if it is absent.
func (f *findings) integer(e Element, name string, least int64) *int64 {
	a, ok := e.Attribute(name)
	if !ok {
		return nil
	}
	number, err := strconv.ParseInt(strings.Trim(a.Value, blanks), 10, 64)
	if err != nil || number < least {
		f.add(a.Pos, "%s is %s; a whole number from %d to %d was expected", name, Quote(a.Value), least, int64(math.MaxInt64))
		return nil
	}
	return &number
}

// decimal returns a decimal attribute without an exponent, as written.
func (f *findings) decimal(e Element, name string) string {
	a, ok := e.Attribute(name)
	if !ok {
		return ""
	}
	text := strings.Trim(a.Value, blanks)
	if !isDecimal(text) {
		f.add(a.Pos, "%s is %s; a decimal number was expected", name, Quote(a.Value))
	}
	return text
}

// isDecimal reports whether text is in the lexical space of xs:decimal.
func isDecimal(text string) bool {
	if text != "" && (text[0] == '-' || text[0] == '+') {
		text = text[1:]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := whole + fraction
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}
