package conform

import (
	"strings"
	"testing"
)

// documents are answers, and the expected faults without and with extensions.
var documents = []struct{ document, plain, extended string }{
	{`<probe id="probe-1"/>`, "", ""},
	{`<probe/>`, "<probe> lacks id", "<probe> lacks id"},
	{`<probe id="p" xmlns:gateway="urn:mirador:gateway"><gateway:placement where="trap" cost="1" measured="true" rough="true" bias="2"/>` +
		`<gateway:cost hits="1" lost="0" rate="0" perHit="1.5" share="1%" dilation="1" budget="2%" rough="true"/></probe>`, "the report: <probe> has no attribute xmlns:gateway", ""},
	{`<probe id="p" xmlns:gateway="urn:mirador:gateway" gateway:notice="n"/>`, "the report", ""},
	{`<probe id="p" xmlns:gateway="urn:mirador:gateway"><gateway:other/></probe>`, "the report", "<gateway:other> is not declared"},
	{`<explain xmlns="urn:mirador:gateway" matches="1"><request>: f()</request></explain>`, "not asked for", ""},
	{`<measurement processId="p_1" threadId="t_1" value="1"/>`, "", ""},
	{`<measurement processId="p_1"><measurement threadId="t_1"><measurement value="1"/><measurement/></measurement></measurement>`, "", ""},
	{`<measurement processId="p_1" threadId="t_1"><measurement value="1"/></measurement>`, "2 ids", "2 ids"},
	{`<measurement value="1e5"/>`, "mir.xsd", "mir.xsd"},
	{`<measurement value="1" xmlns:gateway="urn:mirador:gateway" gateway:count="2" gateway:timed="1" gateway:sum="3" gateway:error="0.5">` +
		`<gateway:percentile of="50" value="1" error="0"/></measurement>`, "the report", ""},
	{`<errors><error>line 1, column 2: no</error></errors>`, "", ""},
	{`<errors><error>no</error></errors>`, "without a position", "without a position"},
	{`<errors/>`, "must not contain", "must not contain"},
	{`<snapshot><node id="n_1" name="here"><process id="p_1"><thread id="t_1" master="true"><stack>f</stack></thread></process></node></snapshot>`, "", ""},
	{`<snapshot><process id="p_1"><stack>f</stack><thread id="t_1"/></process></snapshot>`, "<process> must not contain", "<process> must not contain"},
	{`<snapshot><thread id="t_1" master="1"/></snapshot>`, `master of <thread> cannot be "1"`, "cannot be"},
	{`<sir><program/></sir>`, "sir.xsd", "sir.xsd"},
}

func TestCheck(t *testing.T) {
	for _, c := range documents {
		for extended, want := range map[bool]string{false: c.plain, true: c.extended} {
			got := ""
			if err := Check(extended, []byte(c.document)); err != nil {
				got = err.Error()
			}
			if (want == "") != (got == "") || !strings.Contains(got, want) {
				t.Errorf("%s, extended %v:\n got %q\nwant %q", c.document, extended, got, want)
			}
		}
	}
}

// TestUnreadableDTD checks that parseDTD refuses declarations that it does not support.
func TestUnreadableDTD(t *testing.T) {
	for _, source := range []string{
		`<!ENTITY a "b">`, `<!ELEMENT a (b`, `<!ELEMENT a EMPTY><!ELEMENT a EMPTY>`,
		`<!ATTLIST a b CDATA #IMPLIED>`, `<!ELEMENT a EMPTY><!ATTLIST a b ID #IMPLIED>`, `<!ELEMENT a ((b)>`,
	} {
		if _, err := parseDTD([]byte(source)); err == nil {
			t.Errorf("%s was read", source)
		}
	}
}
