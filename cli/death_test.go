package cli

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"mirador/examples/targets"
)

// TestProbeOfTheDead checks that a probe is reported as gone as soon as its target is dead, even if
// the monitor has not seen the death yet.
func TestProbeOfTheDead(t *testing.T) {
	t.Parallel()
	s := startServe(t, os.Geteuid())
	for i := range 5 {
		target := targets.Start(t, "mmul", "--wait", "2", "8", "10")
		name := "dying" + strconv.Itoa(i)
		s.must(t, "", "attach", "--app", name, strconv.Itoa(target.PID))
		id := probeID(t, s.must(t, `<instrreq activated="true" flush="true"><codeRegion from="mmul:dot"/><metric name="COUNT"/></instrreq>`, "post", "--app", name, "-"))
		if got := wants(t, "--unix-socket", s.socket, "http://mirador/probes/"+id); strings.Contains(got, `"gone"`) {
			t.Errorf("before: %s", got)
		}
		target.Signal(t, syscall.SIGKILL)
		target.Wait(t)
		if got := wants(t, "--unix-socket", s.socket, "http://mirador/probes/"+id); !strings.Contains(got, `"gone": true`) {
			t.Errorf("after: %s", got)
		}
	}
}
