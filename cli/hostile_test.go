package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"mirador/omis/linux/subject"
)

// startScribbler starts testdata/scribbler.c.
func startScribbler(t *testing.T) tally {
	t.Helper()
	c := tally{t, subject.Start(t, exec.Command(subject.Compile(t, "scribbler", "testdata/scribbler.c")))}
	c.Line()
	return c
}

// resident returns the gateway's resident memory in MB.
func (s *served) resident(t *testing.T) (mb int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	if _, err := fmt.Sscan(rest, &mb); err != nil {
		t.Fatal(err)
	}
	return mb >> 10
}

// TestHostileTarget uses a target that overwrites all memory that it shares with the gateway, while
// the gateway reads the memory and before the next gateway adopts it. Neither gateway nor the other
// target may be affected.
func TestHostileTarget(t *testing.T) {
	s := startServe(t, os.Geteuid(), "--placements", "inline,trap")
	c, hostile := startTally(t), startScribbler(t)
	const count = `"/><metric name="COUNT"/><measuring><aggregate function="SUM"/></measuring></instrreq>`
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	s.mir(t, "tally", `<instrreq activated="true" flush="true"><codeRegion from="tally:work`+count)
	hostile.says("forge")
	s.must(t, "", "attach", strconv.Itoa(hostile.PID))
	s.mir(t, "scribbler", `<instrreq activated="true" flush="true"><codeRegion from="scribbler:work`+count)
	for _, number := range []uint64{1 << 40, 1<<64 - 1, 7} {
		c.says("go")
		hostile.says(fmt.Sprint("scribble ", number))
		s.mirador(t, `<ctrlreq action="VALUE"><probe id="probe-2"/></ctrlreq>`, "post", "--app", "scribbler", "-") // any answer is allowed
		if calls := c.says("stop"); s.counted(t) != calls {
			t.Errorf("after %#x was written, %d of %d calls are counted", number, s.counted(t), calls)
		}
		if number == 1<<40 || number == 7 {
			s.kill(t)
			begin := time.Now()
			s.await(t, s.begin(t))
			t.Logf("ready after %v with %d MB", time.Since(begin), s.resident(t))
		}
		if calls := c.says("stop"); s.counted(t) != calls {
			t.Errorf("after %#x was written, the next gateway has counted %d of %d calls", number, s.counted(t), calls)
		}
		if mb := s.resident(t); mb > 500 {
			t.Errorf("after %#x was written, the gateway uses %d MB", number, mb)
		}
	}
	hostile.says("go on")
	s.must(t, "", "release", "scribbler")
	s.must(t, "", "release", "tally")
	if calls := hostile.says("end"); calls != 600 {
		t.Errorf("the hostile target made %d calls", calls)
	}
}
