package translate

import (
	"strings"
	"testing"
)

// TestUnknownMetrics checks the messages for misspelt metrics, and for metrics of MIR that are
// not supported.
func TestUnknownMetrics(t *testing.T) {
	for name, want := range map[string]string{
		"COUNTS":         "no metric COUNTS; did you mean COUNT?; on a region",
		"NET_RECEIVE":    "no metric NET_RECEIVE; did you mean NET_RECV?; on a region",
		"wc_time":        "no metric wc_time; did you mean WC_TIME",
		"BLOCKED":        "; did you mean BLOCKED_COUNT or BLOCKED_TIME?; on a region",
		"GC_TIME":        "GC_TIME is a metric of Table 1 of MIR that the monitor does not measure; on a region",
		"NET_BYTES_SEND": "is a metric of Table 1 of MIR that the monitor does not measure",
		"XYZZY":          "no metric XYZZY; on a region there are COUNT",
	} {
		if got := unknown(name); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", name, got, want)
		}
	}
	for _, name := range ofMIR() {
		if _, ok := metric(name, false); ok {
			t.Errorf("%s is measured", name)
		}
	}
}
