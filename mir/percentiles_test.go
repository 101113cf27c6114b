package mir

import (
	"strings"
	"testing"
)

// TestMostPercentiles checks that a request may have MostPercentiles percentiles.
func TestMostPercentiles(t *testing.T) {
	most := strings.TrimSpace(strings.Repeat("7 ", MostPercentiles))
	d, err := Decode([]byte(`<instrreq xmlns:g="urn:mirador:gateway" g:percentiles="`+most+`"/>`), RequestLimits())
	if err != nil {
		t.Fatal(err)
	}
	if got := d.(*InstrRequest).Percentiles; len(got) != MostPercentiles || got[MostPercentiles-1] != 7 {
		t.Errorf("got %v", got)
	}
}

// TestPercentilesThatAreNone checks that the decoder refuses invalid percentiles in a
// measurement.
func TestPercentilesThatAreNone(t *testing.T) {
	for inside, want := range map[string]string{
		`of="101" value="1" error="0"`: `of is "101"; a percentage from 0 to 100 was expected`,
		`value="1" error="0"`:          `<percentile> has no of; write <percentile of="…">`,
		`of="50" value="x" error="0"`:  `value is "x"; a decimal number was expected`,
		`of="50" value="1" error="y"`:  `error is "y"; a decimal number was expected`,
	} {
		document := `<measurement value="1" xmlns:g="urn:mirador:gateway"><g:percentile ` + inside + `/></measurement>`
		if _, err := Decode([]byte(document), ReplyLimits()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", inside, err)
		}
	}
}
