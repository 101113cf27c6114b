package cli

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// parser prints the samples of an OpenMetrics text on its standard input, and fails if it is
// invalid.
const parser = `
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
for family in text_string_to_metric_families(sys.stdin.read()):
    for s in family.samples:
        if s.labels.get("label") == "ci":
            print(family.type, s.name, s.labels.get("le", s.labels.get("percentile", s.labels.get("call", ""))), s.value)
`

// TestOpenMetrics checks that a strict parser of OpenMetrics accepts the gateway's metrics, and
// what it reads.
func TestOpenMetrics(t *testing.T) {
	t.Parallel()
	s := startServe(t, 0)
	c := startTally(t)
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	const label = "ci"
	before := c.says("stop")
	s.must(t, "", "probe", "add", "--region", "tally:work", "--metric", "COUNT,WC_TIME", "--percentiles", "50,99.9", "--process", "*", "--label", label)
	s.must(t, "", "probe", "add", "--metric", "SYSCALL_COUNT:write,CPU_TIME", "--process", "*", "--label", label)
	c.says("go")
	time.Sleep(20 * time.Millisecond)
	calls := c.says("stop") - before
	cmd := exec.Command("/usr/bin/python3", "-c", parser)
	cmd.Stdin = strings.NewReader(wants(t, "--unix-socket", s.socket, "-H", "Accept: application/openmetrics-text; version=1.0.0", "http://mirador/metrics"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n := strconv.Itoa(calls) + `(\.0)?`
	for _, want := range []string{
		"counter mirador_probe_count_total  " + n, "gauge mirador_probe_latest_wc_time_seconds  [0-9.e-]+",
		"gauge mirador_probe_percentile_wc_time_seconds 99.9 [0-9.e-]+", "histogram mirador_probe_execution_wc_time_seconds_bucket 100.0 " + n,
		`histogram mirador_probe_execution_wc_time_seconds_bucket \+Inf ` + n, "histogram mirador_probe_execution_wc_time_seconds_count  " + n,
		`counter mirador_probe_syscall_count_total write [1-9][0-9]*\.0`, "gauge mirador_probe_cpu_time_seconds  [0-9.]+",
	} {
		if !regexp.MustCompile("(?m)^" + want + "$").Match(out) {
			t.Errorf("%s is missing in\n%s", want, out)
		}
	}
}
