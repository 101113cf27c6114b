package cli

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis/linux/subject"
)

// watching starts a program that counts its own calls, with a probe.
func watching(t *testing.T) (*served, tally) {
	t.Helper()
	s := startServe(t, 0)
	c := startTally(t)
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	s.must(t, "", "probe", "add", "--region", "tally:work", "--metric", "COUNT", "--process", "*")
	return s, c
}

func (s *served) watch(args ...string) *exec.Cmd {
	cmd := exec.Command(miradorPath, append([]string{"probe", "watch"}, args...)...)
	cmd.Env = append(cmd.Environ(), "MIRADOR_GATEWAY=unix:"+s.socket)
	return cmd
}

// TestProbeWatch watches a probe on a terminal until Ctrl-C, which restores the terminal and
// leaves the last table.
func TestProbeWatch(t *testing.T) {
	s, c := watching(t)
	c.says("go")
	screen := openScreen(t, openPrivateTerminal(t), s.watch("--every", "50ms", "probe-1"))
	screen.wait(otherScreen)
	screen.wait("probe-1  tally  inline  \r\nPROCESS  COUNT")
	screen.wait("PER S  CHANGE")
	screen.wait("█")
	c.says("stop")
	screen.keys("\x03")
	screen.wait(firstScreen + "TIME          PROCESS  COUNT\r\n")
}

// TestProbeWatchResized resizes the terminal long before the next reading.
func TestProbeWatchResized(t *testing.T) {
	s, _ := watching(t)
	ptmx := openPrivateTerminal(t)
	screen := openScreen(t, ptmx, s.watch("--every", "1h", "probe-1"))
	for _, c := range []struct {
		rows, columns uint16
		want          string
	}{
		{20, 12, "probe-1  ta\r\nPROCESS  CO\r\n"}, // cut, not wrapped
		{3, 40, "probe-1  tally  inline  \r\n… 2 more lines\r\n"},
		{20, 40, "CHANGE\r\n"},
	} {
		screen.wait(clearScreen)
		if err := unix.IoctlSetWinsize(int(ptmx.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: c.rows, Col: c.columns}); err != nil {
			t.Fatal(err)
		}
		screen.wait(clearScreen)
		screen.wait(c.want)
		if err := unix.IoctlSetWinsize(int(ptmx.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
			t.Fatal(err)
		}
	}
	screen.keys("\x03")
}

// TestProbeWatchInAPipe checks that a reader of JSON gets a line for each reading, until
// the probe is removed.
func TestProbeWatchInAPipe(t *testing.T) {
	s, c := watching(t)
	c.says("go")
	watch := subject.Start(t, s.watch("--every", "20ms", "--json", "probe-1"))
	var last int64
	for range 5 {
		var values []probeValue
		if err := json.Unmarshal([]byte(watch.Line()), &values); err != nil || len(values) > 1 {
			t.Fatalf("%+v, %v", values, err)
		}
		for _, v := range values {
			now, err := v.Value.Int64()
			if err != nil || now < last {
				t.Errorf("the count is %s after %d, %v", v.Value, last, err)
			}
			last = now
		}
	}
	if last == 0 {
		t.Error("nothing is counted")
	}
	lines := subject.Start(t, s.watch("--every", "20ms", "probe-1"))
	for _, want := range []string{`TIME +PROCESS  COUNT$`, `[012]\d:[0-5]\d:[0-5]\d\.\d{3}  p_1 +\d+$`, "$", `TIME +PROCESS  COUNT$`} {
		if got := lines.Line(); !regexp.MustCompile("^" + want).MatchString(got) {
			t.Errorf("a line is %q, want %q", got, want)
		}
	}
	s.must(t, "", "probe", "rm", "probe-1")
	c.says("stop")
}

func TestTrend(t *testing.T) {
	h := trend{sums: true}
	now := time.Now()
	add := func(values ...float64) {
		for _, value := range values {
			now = now.Add(time.Second / 2)
			h.add(value, now)
		}
	}
	add(5, 5, 6, 8, 15)
	if got := h.bars(9) + h.bars(2) + h.bars(-1); got != "▁▂▃█"+"▃█" {
		t.Errorf("the changes 0, 1, 2, 7 are %q", got)
	}
	if got := h.rate(); got != "14" {
		t.Errorf("the rate is %s, want 14 a second", got)
	}
	add(make([]float64, 2*remembered)...)
	if got := h.bars(2 * remembered); got != strings.Repeat("▁", remembered) {
		t.Errorf("no changes are %q", got)
	}
	h = trend{sums: true}
	add(0, 4, 0)
	if got := h.bars(9); got != "█▁" {
		t.Errorf("the changes 4, -4 are %q", got)
	}
	h = trend{}
	add(7, 0)
	if got := h.bars(9) + h.rate(); got != "█▁" {
		t.Errorf("the values 7, 0 are %q", got)
	}
}

func TestFitted(t *testing.T) {
	if got := fitted([]string{"abcdef", "xy", "z"}, 3, 2); got != "abc\n… 2\n" {
		t.Errorf("got %q", got)
	}
	if got := fitted([]string{"▁▂▃▄"}, 2, 1); got != "▁▂\n" {
		t.Errorf("got %q", got)
	}
}
