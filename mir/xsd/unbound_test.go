package xsd_test

import (
	"testing"

	"mirador/schemas"
)

// TestUnboundNamespace validates documents whose elements leave the default namespace by
// xmlns="". libxml2 reads the name of such a namespace without a check for NULL.
func TestUnboundNamespace(t *testing.T) {
	schema := parsed(t, schemas.MIR())
	for document, valid := range map[string]bool{
		`<sirreq xmlns=""/>`: false,
		`<instrreq xmlns=""><codeRegion from="f"/><metric name="m"/></instrreq>`:                               true,
		`<instrreq xmlns="urn:apart:mir:1"><codeRegion xmlns="" from="f"/><metric name="m"/></instrreq>`:       true,
		`<instrreq><codeRegion from="f"/><metric xmlns="" xmlns:g="urn:mirador:gateway" name="m"/></instrreq>`: true,
		`<instrreq><nothing xmlns=""/></instrreq>`:                                                             false,
	} {
		if err := validate(t, schema, document); (err == nil) != valid {
			t.Errorf("%s: %v, want valid %v", document, err, valid)
		}
	}
}
