package cli

import (
	"fmt"
	"strings"
	"testing"

	"mirador/examples/targets"
)

const countChild = `<instrreq activated="true" flush="true"><codeRegion from="forker:child"/><metric name="COUNT"/>` +
	`<measuring><aggregate function="SUM"/></measuring></instrreq>`

// TestForksAreFollowed uses a program that forks twenty processes. Ten of them call child, and ten
// execute the program again. The probe counts the ten calls. No process is traced before the probe
// exists, or after it is removed.
func TestForksAreFollowed(t *testing.T) {
	s := startServe(t, 0)
	p := targets.Start(t, "forker", "20", "1000")
	s.must(t, "", "attach", "--follow", fmt.Sprint(p.PID))
	if traced(t, p.PID) {
		t.Error("the program is traced, and there is no probe")
	}
	s.must(t, countChild, "post", "-")
	if !traced(t, p.PID) {
		t.Error("the program is not traced")
	}
	p.Go(t)
	if err := p.Wait(t); err != nil {
		t.Fatal(err)
	}
	if got := s.must(t, `<ctrlreq action="VALUE"><probe id="probe-1"/></ctrlreq>`, "post", "-"); !strings.Contains(got, `value="10"`) {
		t.Errorf("counted %s, want 10", got)
	}
	checkForker(t, p, 20)
}

// TestForkWatchEnds removes the only probe, and checks that forks are not reported any more.
func TestForkWatchEnds(t *testing.T) {
	s := startServe(t, 0)
	p := targets.Start(t, "forker", "4", "1000")
	s.must(t, "", "attach", "--follow", fmt.Sprint(p.PID))
	s.must(t, countChild, "post", "-")
	s.must(t, `<ctrlreq action="REMOVE"><probe id="probe-1"/></ctrlreq>`, "post", "-")
	eventually(t, "the program is not traced", func() bool { return !traced(t, p.PID) })
	p.Go(t)
	if err := p.Wait(t); err != nil {
		t.Fatal(err)
	}
	checkForker(t, p, 4)
	if apps := s.must(t, "", "apps"); strings.Count(apps, "p_") != 1 {
		t.Errorf("forked processes were attached without a probe:\n%s", apps)
	}
}

// TestForksOutliveGateway kills the gateway while processes are forked, and checks that all of them
// continue.
func TestForksOutliveGateway(t *testing.T) {
	s := startServe(t, 0)
	p := targets.Start(t, "forker", "60", "5000")
	s.must(t, "", "attach", "--follow", fmt.Sprint(p.PID))
	s.must(t, countChild, "post", "-")
	p.Go(t)
	eventually(t, "a forked process is attached", func() bool { return strings.Count(s.must(t, "", "apps"), "p_") > 1 })
	s.kill(t)
	if err := p.Wait(t); err != nil {
		t.Fatal(err)
	}
	checkForker(t, p, 60)
}

// checkForker compares forker's output with its output when it is not observed.
func checkForker(t *testing.T, p *targets.Process, children int) {
	t.Helper()
	for i := 1; i <= children; i++ {
		if want := fmt.Sprintf("ended %d %d\n", i, i); !strings.Contains(p.Output(), want) {
			t.Errorf("forker did not write %q:\n%s", want, p.Output())
		}
	}
}

// traced reports whether a process has a tracer.
func traced(t *testing.T, pid int) bool {
	t.Helper()
	return status(t, pid, pid, "TracerPid") != "0"
}
