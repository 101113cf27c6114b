package cli

import (
	"strings"
	"testing"
)

func TestDocumentsAreIndentedForPeople(t *testing.T) {
	for _, c := range []struct{ name, document, want string }{
		{"a document", `<measurement><measurement threadId="t_1" value="1"/></measurement>`,
			"<measurement>\n  <measurement threadId=\"t_1\" value=\"1\"/>\n</measurement>\n"},
		{"the gateway's own elements",
			`<probe id="probe-1" xmlns:gateway="urn:mirador:gateway"><gateway:placement where="trap" why="a &lt; b" cost="10000" rough="true"/></probe>`,
			"<probe id=\"probe-1\" xmlns:gateway=\"urn:mirador:gateway\">\n  <gateway:placement where=\"trap\" why=\"a &lt; b\" cost=\"10000\" rough=\"true\"/>\n</probe>\n"},
		{"text", `<errors><error>line 1</error></errors>`, "<errors>\n  <error>line 1</error>\n</errors>\n"},
		{"a structure", "<sir>\n    <program/>\n</sir>\n", "<sir>\n    <program/>\n</sir>\n"},
		{"no document", `{"detail":"no"}`, "{\"detail\":\"no\"}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			if err := printIndented(&out, []byte(c.document)); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want {
				t.Errorf("printed\n%s\nwant\n%s", out.String(), c.want)
			}
		})
	}
}
