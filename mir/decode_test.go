package mir

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"mirador/omis"
)

func TestDecode(t *testing.T) {
	tests := []struct {
		name, document string
		want           Document
	}{
		{"sirreq", `<sirreq><resource in="http://h/m.c" out="file:///m.c"/><resource in="ftp://h/p.h"/></sirreq>`,
			&SIRRequest{Resources: []Resource{{In: "http://h/m.c", Out: "file:///m.c"}, {In: "ftp://h/p.h"}}}},
		{"snapshotreq", `<snapshotreq named="true" stack="8"/>`, &SnapshotRequest{Named: true, Stack: 8}},
		{"snapshotreq by its long name", `<snapshotrequest named=" 1 " stack=" 3 "/>`, &SnapshotRequest{Named: true, Stack: 3}},
		{"instrreq, in any order", `<instrreq flush="1" activate="true">
				<thread id="t_1"/><measuring delivery="-1" destination="" interval="0" duration="5"><aggregate/><aggregate function="SUM"/></measuring>
				<event/><metric name="COUNT"/><process id="p_1"><thread id="*"/></process><event/><codeRegion to="b"/><metric name="WC_TIME"/>
			</instrreq>`,
			&InstrRequest{
				Region: &CodeRegion{To: "b"}, Metrics: []Metric{{Name: "COUNT"}, {Name: "WC_TIME"}}, Events: 2,
				Measuring: &Measuring{Delivery: new(int64(-1)), Destination: new(""), Interval: new(int64(0)), Duration: new(int64(5)),
					Aggregates: []Function{Last, Sum}},
				Entities:  []Entity{named(Thread, "t_1"), named(Process, "p_1", named(Thread, "*"))},
				Activated: true, Flush: true,
			}},
		{"ctrlreq, the action an element", `<ctrlreq><probe id="p1"/><probe id="p2"/><action type="REMOVE"/></ctrlreq>`,
			&ControlRequest{Action: Remove, Probes: []ProbeRef{{ID: "p1"}, {ID: "p2"}}}},
		{"ctrlreq, the action both ways", `<ctrlreq action="RESET"><action type="RESET"/><probe id="p3"/><metric name="NET_SEND"/><measuring interval="4000"/><communicator id="cb"/></ctrlreq>`,
			&ControlRequest{Action: Reset, Probes: []ProbeRef{{ID: "p3"}}, Metrics: []Metric{{Name: "NET_SEND"}},
				Measuring: &Measuring{Interval: new(int64(4000))}, Entities: []Entity{named(Communicator, "cb")}}},
		{"a budget", `<instrreq xmlns:g="urn:mirador:gateway" g:budget=" 2.5% "><codeRegion from="a"/></instrreq>`,
			&InstrRequest{Region: &CodeRegion{From: "a"}, Budget: 0.025}},
		{"a note", `<instrreq xmlns:g="urn:mirador:gateway" g:label="ci" g:note="build 42, of main"><codeRegion from="a"/></instrreq>`,
			&InstrRequest{Region: &CodeRegion{From: "a"}, Label: "ci", Note: "build 42, of main"}},
		{"probes by label", `<ctrlreq action="REMOVE" xmlns:g="urn:mirador:gateway"><probe g:label="ci-42"/><probe id="p"/></ctrlreq>`,
			&ControlRequest{Action: Remove, Probes: []ProbeRef{{Label: "ci-42"}, {ID: "p"}}}},
		{"a lease", `<instrreq xmlns:g="urn:mirador:gateway" g:lease=" 1h30m "><codeRegion from="a"/></instrreq>`,
			&InstrRequest{Region: &CodeRegion{From: "a"}, Lease: 90 * time.Minute}},
		{"a new lease", `<ctrlreq action="ACTIVATE" xmlns:g="urn:mirador:gateway" g:lease="1s"><probe id="p3"/></ctrlreq>`,
			&ControlRequest{Action: Activate, Probes: []ProbeRef{{ID: "p3"}}, Lease: time.Second}},
		{"clocks", `<instrreq xmlns:g="urn:mirador:gateway" g:clock="fast"><codeRegion from="a"/></instrreq>`,
			&InstrRequest{Region: &CodeRegion{From: "a"}, Fast: true}},
		{"a sample", `<instrreq xmlns:g="urn:mirador:gateway" sample="1/7" g:sample=" 1/100 "><codeRegion from="a"/></instrreq>`,
			&InstrRequest{Region: &CodeRegion{From: "a"}, OneIn: 100}},
		{"percentiles", `<instrreq xmlns:g="urn:mirador:gateway" percentiles="x" g:percentiles=" 50&#9;99.9  .5 100"><codeRegion from="a"/></instrreq>`,
			&InstrRequest{Region: &CodeRegion{From: "a"}, Percentiles: []float64{50, 99.9, 0.5, 100}}},
		{"a budget of another namespace", `<ctrlreq action="VALUE" budget="x" xmlns:g="urn:g" g:budget="2%"><probe id="p"/></ctrlreq>`,
			&ControlRequest{Action: Value, Probes: []ProbeRef{{ID: "p"}}}},
		{"other namespaces are ignored", `<ctrlreq action="VALUE" xmlns:g="urn:g" g:action="x"><g:probe id="q"/><probe id="p" g:id="r"/></ctrlreq>`,
			&ControlRequest{Action: Value, Probes: []ProbeRef{{ID: "p"}}}},
		{"snapshot", `<snapshot><node id="n_1" name="h"><process id="p_1"><stack>main</stack></process><thread id="t_2" master="true"><stack>a&lt;b&gt;</stack><stack/></thread></node></snapshot>`,
			&Snapshot{Entities: []Entity{{Kind: Node, ID: "n_1", Name: "h", Children: []Entity{
				{Kind: Process, ID: "p_1", Stack: []string{"main"}},
				{Kind: Thread, ID: "t_2", Master: true, Stack: []string{"a<b>", ""}}}}}}},
		{"probe", `<probe id="x" xmlns:q="urn:mirador:gateway"><q:placement where="trap" why="no room" cost="10000.5"/></probe>`,
			&Probe{ID: "x", Placements: []omis.Placement{{Name: "trap", Why: "no room", Cost: 10000.5}}}},
		{"measurement", `<measurement probeId="a"><measurement siteId="s" nodeId="n" communicatorId="c" processId="p" threadId="t" value="-1.50"/><measurement/></measurement>`,
			&Measurement{ProbeID: "a", Children: []Measurement{
				{SiteID: "s", NodeID: "n", CommunicatorID: "c", ProcessID: "p", ThreadID: "t", Value: "-1.50"}, {}}}},
		{"a measurement that is sampled", `<measurement xmlns:g="urn:mirador:gateway" value="2" g:count="800" g:timed="8" g:sum="1600.5" g:error="3"/>`,
			&Measurement{Value: "2", Sample: &Sample{Count: 800, Timed: 8, Sum: "1600.5", Error: "3"}}},
		{"a measurement with percentiles", `<measurement xmlns:g="urn:mirador:gateway" value="2"><g:percentile of="50" value="1.5" error="0"/><g:other/><g:percentile of="99.9" value="7" error="0.25"/></measurement>`,
			&Measurement{Value: "2", Spread: &Spread{[]Percentile{{50, "1.5", "0"}, {99.9, "7", "0.25"}}}}},
		{"errors", `<errors> <error>File not found: mm.c</error> </errors>`, &Errors{Messages: []string{"File not found: mm.c"}}},
		{"explain", `<explain xmlns="urn:mirador:gateway" matches="2" cost="7"><request where="trap">: proc_stop([p_1])</request></explain>`,
			&Explain{Matches: 2, Cost: 7, Requests: []ExplainedRequest{{Text: ": proc_stop([p_1])", Placement: omis.Placement{Name: "trap"}}}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Decode([]byte(test.document), RequestLimits())
			if err != nil {
				t.Fatal(err)
			}
			if forgetPositions(got); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	tests := []struct {
		name, document string
		kind           Kind
		messages       []string
	}{
		{"unknown root", "<foo/>", Unsupported, []string{"line 1, column 1: <foo> is not a request of MIR; sirreq, snapshotreq, instrreq or ctrlreq was expected"}},
		{"root in a namespace", "<instrreq xmlns='urn:mir'/>", Unsupported,
			[]string{`line 1, column 1: <instrreq> is in the namespace "urn:mir", MIR's requests are in none or in urn:apart:mir:1; sirreq, snapshotreq, instrreq or ctrlreq was expected`}},
		{"a probe document", "<probe id='x'/>", Unsupported, []string{"line 1, column 1: <probe> is an answer, not a request; sirreq, snapshotreq, instrreq or ctrlreq was expected"}},
		{"no resource", "<sirreq/>", Invalid, []string{`line 1, column 1: <sirreq> names no program; write <resource in="file:///…"/> inside`}},
		{"contradicting activations", "<instrreq activated='true' activate='false'/>", Invalid,
			[]string{"line 1, column 28: activate and activated contradict each other; write activated alone"}},
		{"region without ends", "<instrreq><codeRegion from=''/></instrreq>", Invalid,
			[]string{`line 1, column 11: <codeRegion> has neither from nor to; write <codeRegion from="…"/> with the id of a unit`}},
		{"empty measuring", "<instrreq xmlns:g='urn:g'>\n<measuring g:x='1'/></instrreq>", Invalid,
			[]string{"line 2, column 1: <measuring> is empty; give it interval, delivery, destination, duration or an <aggregate>"}},
		{"everything twice", "<instrreq><codeRegion from='a'/><codeRegion from='a'/><measuring interval='1'/><measuring interval='1'/></instrreq>", Invalid,
			[]string{"line 1, column 33: a second <codeRegion>; a request has one", "line 1, column 80: a second <measuring>; a request has one"}},
		{"times", "<instrreq><measuring delivery='-2' interval='-1' duration='9223372036854775808'/></instrreq>", Invalid, []string{
			`line 1, column 22: delivery is "-2"; a whole number from -1 to 9223372036854775807 was expected`,
			`line 1, column 36: interval is "-1"; a whole number from 0 to 9223372036854775807 was expected`,
			`line 1, column 50: duration is "9223372036854775808"; a whole number from 0 to 9223372036854775807 was expected`}},
		{"statistic", "<instrreq><measuring><aggregate function='MEDIAN'/></measuring></instrreq>", Invalid,
			[]string{`line 1, column 33: function is "MEDIAN"; it can be AVERAGE, MAXIMUM, MINIMUM, SUM or VARIANCE`}},
		{"conflicting actions", "<ctrlreq action='RESET'><probe id='p'/><action type='VALUE'/></ctrlreq>", Invalid,
			[]string{"line 1, column 48: the action VALUE contradicts RESET given before; a request has one"}},
		{"unknown action", "<ctrlreq><probe id='p'/><action type='STOP'/></ctrlreq>", Invalid,
			[]string{`line 1, column 33: the action is "STOP"; it can be VALUE, ACTIVATE, DEACTIVATE, RESET or REMOVE`}},
		{"no action, no probe", "<ctrlreq/>", Invalid, []string{
			`line 1, column 1: <ctrlreq> has no action; write <ctrlreq action="VALUE">`, `line 1, column 1: <ctrlreq> names no probe; write <probe id="…"/> inside`}},
		{"ids", "<instrreq><thread/><process id=''/></instrreq>", Invalid,
			[]string{`line 1, column 11: <thread> has no id; write <thread id="…">`, "line 1, column 29: id of <process> is empty"}},
		{"budgets", "<instrreq xmlns:g='urn:mirador:gateway' g:budget='2'/>", Invalid,
			[]string{`line 1, column 41: budget is "2"; a share of the program's time was expected, such as 2% or 0.5%`}},
		{"leases", "<instrreq xmlns:g='urn:mirador:gateway' g:lease='60'/>", Invalid,
			[]string{`line 1, column 41: lease is "60"; a time from one second to a year was expected, such as 60s or 1h30m`}},
		{"a probe by id and label", "<ctrlreq xmlns:g='urn:mirador:gateway' action='VALUE'><probe id='p' g:label='ci'/><probe/></ctrlreq>", Invalid, []string{
			`line 1, column 69: the probe is named by its id, "p", and by a label; write one of the two`, `line 1, column 83: <probe> has no id; write <probe id="…">`}},
		{"keys", "<instrreq xmlns:g='urn:mirador:gateway' g:key='a b'/>", Invalid,
			[]string{`line 1, column 41: key is "a b"; up to 128 letters, digits and signs were expected, without blanks`}},
		{"notes", "<instrreq xmlns:g='urn:mirador:gateway' g:note='a&#9;b'/>", Invalid,
			[]string{"line 1, column 41: note is \"a\tb\"; up to 256 bytes of text without control characters were expected"}},
		{"labels", "<instrreq xmlns:g='urn:mirador:gateway' g:label='a b'/>", Invalid,
			[]string{`line 1, column 41: label is "a b"; up to 64 letters, digits and signs were expected, without blanks, quotation marks, backslashes and braces`}},
		{"short leases", "<instrreq xmlns:g='urn:mirador:gateway' g:lease='999ms'/>", Invalid,
			[]string{`line 1, column 41: lease is "999ms"; a time from one second to a year was expected, such as 60s or 1h30m`}},
		{"misspelt and misplaced attributes", "<instrreq xmlns:g='urn:mirador:gateway' g:buget='2%' xmlns:o='urn:o' o:x=''>\n<metric name='COUNT' g:clock='fast' o:x=''/></instrreq>", Invalid, []string{
			`line 1, column 41: "buget" is no attribute of the gateway's; on <instrreq> there are budget, clock, details, key, label, lease, note, percentiles, sample`,
			`line 2, column 22: "clock": <metric> has no attributes of the gateway's; only <snapshotreq>, <instrreq> and <ctrlreq> have them`}},
		{"an attribute of another request", "<ctrlreq xmlns:g='urn:mirador:gateway' g:sample='1/2' action='VALUE'><probe id='p'/></ctrlreq>", Invalid,
			[]string{`line 1, column 40: "sample" is no attribute of the gateway's; on <ctrlreq> there are budget, details, lease`}},
		{"an unknown clock", "<instrreq xmlns:g='urn:mirador:gateway' g:clock='sundial'/>", Invalid,
			[]string{`line 1, column 41: clock is "sundial"; it can be ordered or fast`}},
		{"a sample that is not a fraction", "<instrreq xmlns:g='urn:mirador:gateway' g:sample='100'/>", Invalid,
			[]string{`line 1, column 41: sample is "100"; the part of the executions to be timed was expected, from 1/1 to 1/1000000, such as 1/100`}},
		{"a sample of 1/0", "<instrreq xmlns:g='urn:mirador:gateway' g:sample='1/0'/>", Invalid,
			[]string{`line 1, column 41: sample is "1/0"; the part of the executions to be timed was expected, from 1/1 to 1/1000000, such as 1/100`}},
		{"a sample below the smallest", "<instrreq xmlns:g='urn:mirador:gateway' g:sample='1/1000001'/>", Invalid,
			[]string{`line 1, column 41: sample is "1/1000001"; the part of the executions to be timed was expected, from 1/1 to 1/1000000, such as 1/100`}},
		{"no percentiles", "<instrreq xmlns:g='urn:mirador:gateway' g:percentiles=' '/>", Invalid,
			[]string{`line 1, column 41: percentiles is " "; 1 to 16 percentages were expected, such as 50 99 99.9`}},
		{"too many percentiles", "<instrreq xmlns:g='urn:mirador:gateway' g:percentiles='1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17'/>", Invalid,
			[]string{`line 1, column 41: percentiles is "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17"; 1 to 16 percentages were expected, such as 50 99 99.9`}},
		{"a percentile above 100", "<instrreq xmlns:g='urn:mirador:gateway' g:percentiles='50 100.1'/>", Invalid,
			[]string{`line 1, column 41: percentiles is "50 100.1": "100.1" is no percentage from 0 to 100; a list was expected, such as 50 99 99.9`}},
		{"a negative percentile", "<instrreq xmlns:g='urn:mirador:gateway' g:percentiles='-1'/>", Invalid,
			[]string{`line 1, column 41: percentiles is "-1": "-1" is no percentage from 0 to 100; a list was expected, such as 50 99 99.9`}},
		{"percentiles with commas", "<instrreq xmlns:g='urn:mirador:gateway' g:percentiles='50,99'/>", Invalid,
			[]string{`line 1, column 41: percentiles is "50,99": "50,99" is no percentage from 0 to 100; a list was expected, such as 50 99 99.9`}},
		{"a percentile that is not a number", "<instrreq xmlns:g='urn:mirador:gateway' g:percentiles='NaN'/>", Invalid,
			[]string{`line 1, column 41: percentiles is "NaN": "NaN" is no percentage from 0 to 100; a list was expected, such as 50 99 99.9`}},
		{"a budget of 0%", "<ctrlreq action='ACTIVATE' xmlns:g='urn:mirador:gateway' g:budget='0%'><probe id='p'/></ctrlreq>", Invalid,
			[]string{`line 1, column 58: budget is "0%"; a share of the program's time was expected, such as 2% or 0.5%`}},
		{"a budget that rounds to 0%", "<instrreq xmlns:g='urn:mirador:gateway' g:budget='0.0000001%'/>", Invalid,
			[]string{`line 1, column 41: budget is "0.0000001%"; a share of the program's time was expected, such as 2% or 0.5%`}},
		{"a budget above 100%", "<instrreq xmlns:g='urn:mirador:gateway' g:budget='101%'/>", Invalid,
			[]string{`line 1, column 41: budget is "101%"; a share of the program's time was expected, such as 2% or 0.5%`}},
		{"misplaced", "<snapshotreq><thread id='t'/></snapshotreq>", Invalid, []string{"line 1, column 14: <thread> is not allowed in <snapshotreq>"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Decoder{Limits: RequestLimits()}.DecodeRequest([]byte(test.document))
			var refused *Error
			if !errors.As(err, &refused) || refused.Kind != test.kind {
				t.Fatalf("got %v", err)
			}
			if got, want := err.Error(), strings.Join(test.messages, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	for document, want := range map[string]bool{
		`<instrreq><measuring interval="5"/></instrreq>`:                       true,
		`<instrreq flush="true"/>`:                                             false,
		`<instrreq><measuring interval="5"/><metric name="COUNT"/></instrreq>`: false,
	} {
		request, err := Decode([]byte(document), RequestLimits())
		if err != nil {
			t.Fatal(err)
		}
		if got := request.(*InstrRequest).Defaults(); got != want {
			t.Errorf("%s: Defaults is %v", document, got)
		}
	}
}

// TestValidatorDecides checks that an error of the validator ends decoding.
func TestValidatorDecides(t *testing.T) {
	d := Decoder{Limits: RequestLimits(), Validator: refusing{}}
	if _, err := d.DecodeRequest([]byte("<sirreq/>")); err == nil || err.Error() != "no" {
		t.Errorf("got %v", err)
	}
	if _, err := d.Decode([]byte("<foo/>")); err == nil || err.Error() == "no" {
		t.Errorf("the validator received an unknown root: %v", err)
	}
}

type refusing struct{}

func (refusing) Validate(*Tree) error { return errors.New("no") }

// TestEncodingsAndNamespaces covers tools of 2004, which send documents in Latin-1 and in a
// namespace for MIR.
func TestEncodingsAndNamespaces(t *testing.T) {
	const latin1 = "<?xml version='1.0' encoding='iso-8859-1'?>\n"
	for _, c := range []struct{ charset, document, message string }{
		{"", latin1 + "<ctrlreq action='VALUE'><probe id='\xe4'/></ctrlreq>", ""},
		{"ISO-8859-1", "<ctrlreq action='VALUE'><probe id='\xe4'/></ctrlreq>", ""},
		{"latin1", latin1 + "<ctrlreq action='VALUE'><probe id='\xe4'/></ctrlreq>", ""},
		{"utf-8", latin1 + "<ctrlreq action='VALUE'><probe id='ä'/></ctrlreq>", ""},
		{"", "<?xml version='1.0' encoding='UTF-8'?><ctrlreq action='VALUE'><probe id='ä'/></ctrlreq>", ""},
		{"", "<?xml version='1.0' encoding='UTF-8'?><ctrlreq action='VALUE'><probe id='\xe4'/></ctrlreq>", "line 1, column 74: the byte 0xE4 is not UTF-8; send the document in UTF-8"},
		{"", latin1 + "<ctrlreq action='VALUE'><probe id='\x01'/></ctrlreq>", "line 2, column 36: the character U+0001 is not allowed in XML"},
		{"", `<ctrlreq xmlns="urn:apart:mir:1" action="VALUE"><probe id="ä"/></ctrlreq>`, ""},
		{"", `<m:ctrlreq xmlns:m="urn:apart:mir:1" action="VALUE"><m:probe id="ä"/></m:ctrlreq>`, ""},
		{"", `<m:ctrlreq xmlns:m="urn:apart:mir:1" action="VALUE"><probe id="ä"/></m:ctrlreq>`, ""},
		{"", `<m:ctrlreq xmlns:m="urn:apart:mir:1" m:action="VALUE"><m:probe id="ä"/></m:ctrlreq>`,
			"line 1, column 38: the attribute m:action has a prefix; the attributes of MIR have none, write action"},
		{"", `<ctrlreq xmlns="urn:apart:mir:2" action="VALUE"><probe id="ä"/></ctrlreq>`,
			`line 1, column 1: <ctrlreq> is in the namespace "urn:apart:mir:2", MIR's requests are in none or in urn:apart:mir:1; sirreq, snapshotreq, instrreq or ctrlreq was expected`},
	} {
		document, err := Decoder{Limits: RequestLimits(), Charset: c.charset}.DecodeRequest([]byte(c.document))
		switch {
		case c.message != "":
			if err == nil || err.Error() != c.message {
				t.Errorf("%s: got %v, want %s", c.document, err, c.message)
			}
		case err != nil:
			t.Errorf("%s: %v", c.document, err)
		case document.(*ControlRequest).Probes[0].ID != "ä":
			t.Errorf("%s: got %+v", c.document, document)
		}
	}
}

// forgetPositions clears the positions, so that documents can be compared.
func forgetPositions(d Document) {
	var entities func([]Entity)
	entities = func(all []Entity) {
		for i := range all {
			all[i].Pos = Position{}
			entities(all[i].Children)
		}
	}
	metrics := func(all []Metric) {
		for i := range all {
			all[i].Pos = Position{}
		}
	}
	measuring := func(m *Measuring) {
		if m != nil {
			m.Pos = Position{}
		}
	}
	switch d := d.(type) {
	case *SnapshotRequest:
		d.Pos = Position{}
	case *SIRRequest:
		d.Pos = Position{}
		for i := range d.Resources {
			d.Resources[i].Pos = Position{}
		}
	case *InstrRequest:
		d.Pos = Position{}
		if d.Region != nil {
			d.Region.Pos = Position{}
		}
		metrics(d.Metrics)
		measuring(d.Measuring)
		entities(d.Entities)
	case *ControlRequest:
		d.Pos = Position{}
		for i := range d.Probes {
			d.Probes[i].Pos = Position{}
		}
		metrics(d.Metrics)
		measuring(d.Measuring)
		entities(d.Entities)
	case *Snapshot:
		entities(d.Entities)
	}
}
