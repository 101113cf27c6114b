package translate

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"multiply", "multiply", 0}, {"multply", "multiply", 1}, {"multiply", "multiplies", 3},
		{"f.1a2b", "f.1a2c", 1}, {"", "ab", 2}, {"spin", "spni", 2},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestDistanceIsSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-c]{0,8}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if x, y := distance(a, b), distance(b, a); x != y {
			t.Fatalf("distance(%q, %q) = %d, the other way %d", a, b, x, y)
		}
	})
}

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
