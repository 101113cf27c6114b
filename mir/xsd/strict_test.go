package xsd

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mirador/mir"
	"mirador/schemas"
)

// document generates elements that the schema of MIR declares, at permitted and other
// positions.
func document(t *rapid.T) string {
	names := rapid.SampledFrom(strings.Fields(
		"sirreq resource snapshotreq instrreq codeRegion metric event measuring aggregate ctrlreq probe action snapshot site node communicator process thread stack measurement errors error g:x"))
	attributes := rapid.SampledFrom([]string{
		` id="p_1"`, ` id=""`, ` name="COUNT"`, ` in="file:///a"`, ` from="f"`, ` action="VALUE"`, ` type="RESET"`, ` flush="true"`, ` delivery="-1"`, ` g:a="1"`, ` value="1"`})
	var element func(name string, depth int) string
	element = func(name string, depth int) string {
		var text strings.Builder
		text.WriteString("<" + name)
		for _, a := range rapid.SliceOfNDistinct(attributes, 0, 2, func(a string) string { return a[:strings.Index(a, "=")] }).Draw(t, "attributes") {
			text.WriteString(a)
		}
		if depth == 0 {
			text.WriteString(` xmlns:g="urn:other"`)
		}
		text.WriteString(">")
		if depth < 3 {
			for range rapid.IntRange(0, 3-depth).Draw(t, "children") {
				text.WriteString(element(names.Draw(t, "name"), depth+1))
			}
		}
		return text.String() + "</" + name + ">"
	}
	roots := rapid.SampledFrom([]string{"ctrlreq", "instrreq", "snapshot", "sirreq", "measurement", "probe", "errors"})
	return element(roots.Draw(t, "root"), 0)
}

// TestStrictTakesNoMore checks that the whole schema accepts all documents that the strict
// schema accepts. It also checks that the two agree on documents without foreign elements,
// because otherwise trying the strict schema would be a waste.
func TestStrictTakesNoMore(t *testing.T) {
	schema, err := New(schemas.MIR())
	if err != nil {
		t.Fatal(err)
	}
	defer schema.Close()
	c := <-schema.free
	defer func() { schema.free <- c }()
	rapid.Check(t, func(t *rapid.T) {
		text := document(t)
		tree, err := mir.Scan([]byte(text), mir.RequestLimits())
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := eventsOf(tree, nil)
		if err != nil {
			t.Fatal(err)
		}
		strict, whole := validate(c.strict, schema.strict, encoded), validate(c.whole, schema.whole, encoded)
		if strict == 0 && whole != 0 {
			t.Fatalf("only the strict schema accepts %s", text)
		}
		if whole == 0 && strict != 0 && !strings.Contains(text, "<g:x") {
			t.Fatalf("only the whole schema accepts %s", text)
		}
	})
}
