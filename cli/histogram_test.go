package cli

import (
	"fmt"
	"strings"
	"testing"
)

// TestHistogram checks the sums over threads, the differences of buckets, and the bars.
func TestHistogram(t *testing.T) {
	var metrics strings.Builder
	for _, thread := range []string{"t_1", "t_2"} {
		for i, limit := range []string{"1e-07", "2e-07", "5e-07", "1e-06", "+Inf"} {
			fmt.Fprintf(&metrics, "mirador_probe_execution_wc_time_seconds_bucket{app=\"a\",probe=\"probe-2\",thread=%q,le=%q} %d\n", thread, limit, []int{0, 80, 80, 81, 81}[i])
			fmt.Fprintf(&metrics, "mirador_probe_execution_wc_time_seconds_bucket{app=\"a\",probe=\"probe-22\",thread=%q,le=%q} 1\n", thread, limit)
		}
	}
	list, err := histogramIn(metrics.String(), "probe-2")
	if got := fmt.Sprint(list); err != nil || got != "[{2e-07 160} {5e-07 0} {1e-06 2}]" {
		t.Fatalf("%s, %v", got, err)
	}
	var out strings.Builder
	if err := printHistogram(&out, append(list, bucket{0, 40})); err != nil {
		t.Fatal(err)
	}
	want := "UP TO   EXECUTIONS  \n200ns   160         " + strings.Repeat("█", 40) + "\n500ns   0           \n1µs     2           ▏\nlonger  40          " + strings.Repeat("█", 10) + "\n"
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}
