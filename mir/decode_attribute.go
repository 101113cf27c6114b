package mir

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

const blanks = " \t\r\n" // around a number or a boolean they do not matter

// required is the value of an attribute that must be there and say something.
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

// optional is the value of an attribute, "" if it is not there.
func optional(e Element, name string) string {
	a, _ := e.Attribute(name)
	return a.Value
}

// ours is an attribute of the gateway's namespace.
func ours(e Element, name string) (Attribute, bool) {
	for _, a := range e.Attributes() {
		if a.Space == GatewayNamespace && a.Name == name {
			return a, true
		}
	}
	return Attribute{}, false
}

// onlyOurs refuses what the gateway's namespace has no meaning for: attributes of a request
// other than those that its root may have. What is misspelt would go unnoticed.
func (f *findings) onlyOurs(root Element, known ...string) {
	for i := range root.tree.elements {
		e := Element{root.tree, i}
		for _, a := range e.Attributes() {
			switch {
			case a.Space != GatewayNamespace || i == root.index && slices.Contains(known, a.Name):
			case i == root.index && len(known) > 0:
				f.add(a.Pos, "%s is no attribute of the gateway's; on <%s> there are %s", Quote(a.Name), root.Name(), strings.Join(known, ", "))
			default:
				f.add(a.Pos, "%s: <%s> has no attributes of the gateway's; they stand on <instrreq> and <ctrlreq>", Quote(a.Name), quoteless(e.Tag()))
			}
		}
	}
}

// leastBudget is the least share, in percent, that shares are written with digits for.
const leastBudget = 0.000001

// budget is a share in percent, as a fraction; 0 if it is not there.
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

// fast tells whether the fast clock is asked for.
func (f *findings) fast(e Element) bool {
	a, ok := ours(e, "clock")
	if ok && a.Value != "fast" && a.Value != "ordered" {
		f.add(a.Pos, "clock is %s; it can be ordered or fast", Quote(a.Value))
	}
	return a.Value == "fast"
}

// details reports whether the gateway's extensions are asked for.
func (f *findings) details(e Element) bool {
	a, ok := ours(e, "details")
	if !ok {
		return false
	}
	value, _ := f.truth(a)
	return value
}

// boolean is an attribute that is false when it is not there.
func (f *findings) boolean(e Element, name string) bool {
	value, _ := f.stated(e, name)
	return value
}

// stated is a boolean attribute, and whether it is there.
func (f *findings) stated(e Element, name string) (value, there bool) {
	a, ok := e.Attribute(name)
	if !ok {
		return false, false
	}
	return f.truth(a)
}

// truth reads a boolean attribute; ok is false if it is none.
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

// integer is an attribute that counts, nil if it is not there.
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

// decimal is an attribute that carries a number without an exponent, kept as
// it is written.
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

// isDecimal is the lexical space of xs:decimal.
func isDecimal(text string) bool {
	if text != "" && (text[0] == '-' || text[0] == '+') {
		text = text[1:]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := whole + fraction
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}
