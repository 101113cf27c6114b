package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mirador/omis/linux/subject"
)

// TestMarkers counts the static probes of a running program, and times what is between two of them. The
// counts are exact, also after the gateway was killed, and the program is unharmed.
func TestMarkers(t *testing.T) {
	program := filepath.Join(t.TempDir(), "marked")
	if out, err := exec.Command("gcc", "-O2", "-o", program, "../sir/binary/testdata/marked.c").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	s := startServe(t, os.Geteuid())
	target := subject.Start(t, exec.Command(program))
	target.Line()
	s.must(t, "", "attach", strconv.Itoa(target.PID))
	add := func(region string, metrics ...string) string {
		text := `<instrreq activated="true" flush="true"><codeRegion ` + region + `/>`
		for _, m := range metrics {
			text += `<metric name="` + m + `"/>`
		}
		out, _, _ := s.mirador(t, text+`<process id="p_1"/></instrreq>`, "post", "--app", "marked", "-")
		return out
	}
	names := []string{"begin", "round", "odd", "end"}
	for _, name := range names {
		add(`from="marked:`+name+`"`, "COUNT")
	}
	add(`from="marked:marked:begin" to="marked:end"`, "COUNT", "WC_TIME")
	want := make([]int, len(names))
	turn := func(n, m int) {
		t.Helper()
		target.Tell("%d %d", n, m)
		if got := target.Line(); got != strconv.Itoa(n*m) {
			t.Errorf("the program printed %s, want %d", got, n*m)
		}
		for i, more := range []int{1, n, n / 2, 1} {
			want[i] += more
			if v := s.values(t, "marked", "probe-"+strconv.Itoa(i+1), 1); int(v[0]) != want[i] {
				t.Errorf("%s was passed %v times, want %d", names[i], v[0], want[i])
			}
		}
		if v := s.values(t, "marked", "probe-5", 2); int(v[0]) != want[0] || v[1] <= 0 || v[1] > 1e4 {
			t.Errorf("from begin to end: %v executions, want %d; the last one took %v ms", v[0], want[0], v[1])
		}
	}
	turn(7, 10)
	turn(0, 1)
	turn(200, 3)
	s.kill(t)
	s.await(t, s.begin(t))
	turn(5, 5)
	if out := add(`from="marked:begin"`, "WC_TIME"); !strings.Contains(out, "is a marker, an instant without a length") {
		t.Errorf("the length of a marker: %s", out)
	}
	if out := add(`from="marked:seldom"`, "COUNT"); !strings.Contains(out, "only while a counter in its memory") {
		t.Errorf("a marker with a semaphore: %s", out)
	}
	s.must(t, "", "release", "marked")
	target.Tell("6 7")
	if got := target.Line(); got != "42" {
		t.Errorf("the program printed %s", got)
	}
}
