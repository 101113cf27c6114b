package xsd_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mirador/mir"
	"mirador/mir/xsd"
	"mirador/omis"
	"mirador/schemas"
)

func parsed(t testing.TB, source []byte) *xsd.Schema {
	t.Helper()
	schema, err := xsd.New(source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(schema.Close)
	return schema
}

func validate(t testing.TB, schema *xsd.Schema, document string) error {
	t.Helper()
	tree, err := mir.Scan([]byte(document), mir.ReplyLimits())
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(tree)
}

func TestValidDocuments(t *testing.T) {
	schema := parsed(t, schemas.MIR())
	files, err := filepath.Glob("../testdata/documents/*.xml")
	if err != nil || len(files) == 0 {
		t.Fatal("no documents", err)
	}
	for _, file := range files {
		if name := filepath.Base(file); strings.HasPrefix(name, "bad-") || name == "foreign.xml" || name == "explain.xml" {
			continue
		}
		document, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, schema, string(document)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, document := range []string{
		`<instrreq xmlns:a="urn:x" a:c="1"><a:b><codeRegion/></a:b><metric name="m" a:x=""/><measuring delivery="1"><a:y/></measuring><a:z/></instrreq>`,
		`<instrreq xmlns:a="not a URI"><thread id="t" xml:lang="en"/></instrreq>`,
		`<instrreq><site id="s"/><site id="t"><process id="p"/><communicator id="c"/></site></instrreq>`,
		`<instrreq xmlns="urn:apart:mir:1"><codeRegion from="f"/><metric name="m"/></instrreq>`,
		`<m:instrreq xmlns:m="urn:apart:mir:1"><m:codeRegion from="f"/><metric name="m"/></m:instrreq>`,
		"<?xml version='1.0' encoding='ISO-8859-1'?><instrreq><codeRegion from='\xe4'/></instrreq>",
		`<ctrlreq/>`, // the decoder reports the missing probe
	} {
		if err := validate(t, schema, document); err != nil {
			t.Errorf("%s: %v", document, err)
		}
	}
}

func TestOtherSchemas(t *testing.T) {
	sir := parsed(t, schemas.SIR())
	const structure = `<sir><program path="/bin/mmul" buildId="ab01"><unit id="u1" name="f(int)" symbol="_Z1fi" kind="function" file="f.cc" line="3" entry="0x401136" size="42"><unit id="u1.1" name="f" kind="call" entry="0x401140" size="5"/></unit></program></sir>`
	if err := validate(t, sir, structure); err != nil {
		t.Error(err)
	}
	if err := validate(t, sir, `<sir><program path="x" buildId="abc"/></sir>`); err == nil {
		t.Error("a build id of one and a half bytes was accepted")
	}
	gateway := parsed(t, schemas.Gateway())
	explain, err := mir.Marshal(&mir.Explain{Matches: 1, Cost: 1e10, Requests: []mir.ExplainedRequest{
		{Text: ": f()"}, {Text: "e() : f()", Placement: omis.Placement{Name: "trap", Why: "because", Cost: 1}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := validate(t, gateway, string(explain)); err != nil {
		t.Errorf("%s: %v", explain, err)
	}
}

func TestInvalidDocuments(t *testing.T) {
	schema := parsed(t, schemas.MIR())
	tests := []struct {
		document string
		messages []string
	}{
		{`<instrreq><metric name=""/><metric/><metrik name="x"/></instrreq>`, []string{
			"line 1, column 19: name of <metric> is empty",
			`line 1, column 28: <metric> has no name; write <metric name="…">`,
			"line 1, column 37: <metrik> is not allowed in <instrreq>"}},
		{"<instrreq\n  flush='maybe' foo='1'/>", []string{
			`line 2, column 3: flush is "maybe"; true or false was expected`,
			"line 2, column 17: the attribute foo does not belong to <instrreq>"}},
		{`<instrreq><measuring delivery="-2" interval="abc" duration="99999999999999999999"/></instrreq>`, []string{
			`line 1, column 22: delivery is "-2"; it must be at least -1`,
			`line 1, column 36: interval is "abc"; a whole number that is not negative was expected`,
			`line 1, column 51: duration is "99999999999999999999"; a whole number that is not negative was expected`}},
		{`<instrreq><measuring><aggregate function="MEDIAN"/></measuring></instrreq>`, []string{
			`line 1, column 33: function is "MEDIAN"; it can be AVERAGE, MAXIMUM, MINIMUM, SUM or VARIANCE`}},
		{`<instrreq>text<process id="p"><thread id="t"/><stack/></process></instrreq>`, []string{
			"line 1, column 1: text is not allowed in <instrreq>",
			"line 1, column 47: <stack> is not allowed in <process>; <thread> is allowed here"}},
		{`<sirreq/>`, []string{"line 1, column 1: <sirreq> is not complete; <resource> is missing inside"}},
		{`<sirreq><resource in="%%"/><resource/></sirreq>`, []string{
			`line 1, column 19: in is "%%"; a URI was expected`, `line 1, column 28: <resource> has no in; write <resource in="…">`}},
		{`<instrreq><site id="s"><node id="n"/><process id="p"/></site></instrreq>`, []string{
			"line 1, column 38: <process> is not allowed in <site>; <node> is allowed here"}},
		{`<errors><error><b/></error></errors>`, []string{"line 1, column 16: <b> is not allowed in <error>; only text is allowed there"}},
		{"<snapshotreq>\n <a/><b><c/></b></snapshotreq>", []string{
			"line 2, column 2: <a> is not allowed in <snapshotreq>", "line 2, column 6: <b> is not allowed in <snapshotreq>"}},
		{`<instrreq><metric name="COUNT">x<thread/></metric></instrreq>`, []string{
			"line 1, column 33: <thread> is not allowed in <metric>"}},
		{`<instrreq><event>x</event></instrreq>`, []string{"line 1, column 11: <event> must be empty"}},
		{`<foo/>`, []string{"line 1, column 1: a document cannot begin with <foo>"}},
		{`<measurement value="1e5"/>`, []string{`line 1, column 14: value is "1e5"; a decimal number was expected`}},
		{`<ctrlreq action="', attribute 'probe': x"/>`, []string{
			`line 1, column 10: action is "', attribute 'probe': x"; it can be VALUE, ACTIVATE, DEACTIVATE, RESET or REMOVE`}},
		{`<ctrlreq action="` + strings.Repeat("ä", 20_000) + `"/>`, []string{
			`line 1, column 10: action is "` + strings.Repeat("ä", 60) + `…"; it can be VALUE, ACTIVATE, DEACTIVATE, RESET or REMOVE`}},
	}
	for _, test := range tests {
		err := validate(t, schema, test.document)
		var refused *mir.Error
		if !errors.As(err, &refused) || refused.Kind != mir.Invalid {
			t.Errorf("%.200s: got %v", test.document, err)
			continue
		}
		if got, want := err.Error(), strings.Join(test.messages, "\n"); got != want {
			t.Errorf("%.200s\ngot\n%s\nwant\n%s", test.document, got, want)
		}
	}
}

// TestManyFaults checks that the number of reported faults is limited.
func TestManyFaults(t *testing.T) {
	schema := parsed(t, schemas.MIR())
	began := processorTime(t)
	err := validate(t, schema, "<instrreq>"+strings.Repeat("<metric/>", 6000)+"</instrreq>")
	var refused *mir.Error
	if !errors.As(err, &refused) || len(refused.Faults) != 16 {
		t.Errorf("got %v", err)
	}
	if took := processorTime(t) - began; took > time.Second {
		t.Errorf("it took %v", took)
	}
}

// processorTime returns the CPU time of this process. Elapsed time would depend on the load of
// the machine.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestSchemaLocation checks that a document cannot make the validator read a file.
func TestSchemaLocation(t *testing.T) {
	schema := parsed(t, schemas.MIR())
	other := filepath.Join(t.TempDir(), "other.xsd")
	const element = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="foo"/></xs:schema>`
	if err := os.WriteFile(other, []byte(element), 0o600); err != nil {
		t.Fatal(err)
	}
	document := `<foo xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="file://` + other + `"/>`
	if err := validate(t, schema, document); err == nil {
		t.Error("the validator read a schema that the document names")
	}
}

func TestTooManyAttributes(t *testing.T) {
	schema := parsed(t, schemas.MIR())
	limits := mir.RequestLimits()
	limits.AttributesPerElement = 1000
	document := "<instrreq"
	for i := range 300 {
		document += " a" + strings.Repeat("b", i%100) + string(rune('a'+i/100)) + "='1'"
	}
	tree, err := mir.Scan([]byte(document+"/>"), limits)
	if err != nil {
		t.Fatal(err)
	}
	var refused *mir.Error
	if err := schema.Validate(tree); !errors.As(err, &refused) || refused.Kind != mir.TooLarge {
		t.Errorf("got %v", err)
	}
}

func TestBadSchemas(t *testing.T) {
	for source, want := range map[string]string{
		"":     "cannot parse the schema: it is empty",
		"<xs:": "cannot parse the schema: line 1: ",
		`<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="a" type="b"/></xs:schema>`: "cannot parse the schema: line 1: ",
	} {
		schema, err := xsd.New([]byte(source))
		if err == nil {
			schema.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v", source, err)
		}
	}
}

// TestWholeReading checks that each step of decoding refuses its kind of document.
func TestWholeReading(t *testing.T) {
	d := mir.Decoder{Limits: mir.RequestLimits(), Validator: parsed(t, schemas.MIR())}
	tests := []struct {
		document string
		kind     mir.Kind
	}{
		{`<ctrlreq action="VALUE"><probe id="probe_1"/></ctrlreq>`, 0},
		{`<ctrlreq action="VALUE"><probe id="probe_1"></ctrlreq>`, mir.Malformed},
		{`<ctrlreq action="VALUE"><probe/></ctrlreq>`, mir.Invalid},
		{`<ctrlreq action="VALUE"/>`, mir.Invalid},
		{`<foo/>`, mir.Unsupported},
		{strings.Repeat("<a>", 1000), mir.TooLarge},
	}
	for _, test := range tests {
		_, err := d.DecodeRequest([]byte(test.document))
		var refused *mir.Error
		if test.kind == 0 && err != nil || test.kind != 0 && (!errors.As(err, &refused) || refused.Kind != test.kind) {
			t.Errorf("%.60s: got %v", test.document, err)
		}
	}
}
