package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mirador/mir/conform"
	"mirador/omis/linux/subject"
)

// compileRounds compiles a program with loops, with debug information.
func compileRounds(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "rounds")
	for _, args := range [][]string{{"-O0", "-c", "-o", program + ".o", "testdata/unfolded.c"}, {"-O2", "-o", program, "testdata/rounds.c", program + ".o"}} {
		if out, err := exec.Command("gcc", append([]string{"-g"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v\n%s", err, out)
		}
	}
	return program
}

// TestRegionsInsideFunctions counts and times loops, iterations and calls of a running program. The
// counts are exact, also after the gateway was killed, and the program is unharmed.
func TestRegionsInsideFunctions(t *testing.T) {
	s := startServe(t, os.Geteuid())
	program := compileRounds(t)
	target := subject.Start(t, exec.Command(program))
	target.Line()
	s.must(t, "", "attach", strconv.Itoa(target.PID))
	regions := []string{"rounds/loop1", "rounds/loop1/body", "rounds/loop1/loop1", "rounds/loop1/loop1/body", "rounds/loop1/loop1/call.step", "rounds.c:19", "finished", "kept/all", "halved/loop1", "halved/if1.then", "unfolded/loop1/scope1", "unfolded/scope1"}
	for _, r := range regions {
		s.mir(t, "rounds", `<instrreq activated="true" flush="true"><codeRegion from="rounds:`+r+`"/><metric name="COUNT"/><metric name="WC_TIME"/><process id="p_1"/></instrreq>`)
	}
	values := func(i int) []float64 { return s.values(t, "rounds", "probe-"+strconv.Itoa(i+1), 2) }
	want := make([]int, len(regions))
	run := func(n, m int) {
		target.Tell("%d %d", n, m)
		if found, err := strconv.Atoi(target.Line()); err != nil || n*m > 0 && found == 0 {
			t.Errorf("the program printed %d, %v", found, err)
		}
		inner := n - n/3
		for i, more := range []int{1, n, inner, inner * m, inner * m, inner * m, 1, 1, min(n/7, 1), min(n/7, 1), n, 1} {
			want[i] += more
		}
		for i, r := range regions {
			v := values(i)
			if int(v[0]) != want[i] || want[i] > 0 && (v[1] <= 0 || v[1] > 1e4) {
				t.Errorf("%s was executed %v times, want %d; the last one took %v ms", r, v[0], want[i], v[1])
			}
		}
	}
	for _, in := range [][2]int{{9, 4}, {0, 4}, {5, 0}, {3, 100}} {
		run(in[0], in[1])
	}
	s.kill(t)
	target.Tell("6 7") // the placement decides whether these are counted
	target.Line()
	s.await(t, s.begin(t))
	for i := range regions {
		want[i] = int(values(i)[0])
	}
	run(10, 10)
	if out, errs, status := s.mirador(t, "", "probe", "add", "--region", "rounds:rounds/loop2", "--metric", "COUNT"); status == 0 || !strings.Contains(errs, "rounds:rounds has no region loop2; it has loop1") {
		t.Errorf("a region that does not exist: %d %s%s", status, out, errs)
	}
	if out, errs, status := s.mirador(t, "", "probe", "add", "--region", "rounds.c:1", "--metric", "COUNT"); status == 0 || !strings.Contains(errs, "the nearest lines where one begins: ") {
		t.Errorf("a line without code: %d %s%s", status, out, errs)
	}
	for region, why := range map[string]string{
		"rounds/loop1/if1.then": "the program has no code at its positions: the compiler removed the branch, or merged it with other code",
		"rounds/loop1/if1":      "compile without optimisation; this line in it can be counted: rounds:rounds.c:16",
		"halved/if1.else":       "with a region if1.else",
	} {
		if out, errs, status := s.mirador(t, "", "probe", "add", "--region", "rounds:"+region, "--metric", "COUNT"); status == 0 || !strings.Contains(errs, why) {
			t.Errorf("%s cannot be measured: %d %s%s", region, status, out, errs)
		}
	}
	const besides = "rounds:kept is also inlined into main, at 1 places: executions of that code are not measured; name rounds:kept/all to measure them too"
	if explained := s.must(t, `<instrreq><codeRegion from="rounds:kept"/><metric name="COUNT"/></instrreq>`, "post", "--explain", "-"); !strings.Contains(explained, besides) {
		t.Errorf("an explanation: %s", explained)
	}
	if out, errs, _ := s.mirador(t, "", "probe", "add", "--region", "rounds:kept", "--metric", "COUNT"); !strings.Contains(errs, besides) {
		t.Errorf("a probe on a part of the code: %s%s", out, errs)
	}
	s.must(t, "", "release", "rounds")
	target.Tell("6 7")
	target.Line()
}

// TestSIRTables prints the regions of a program as a table, as JSON, beside the source, and as a valid
// document.
func TestSIRTables(t *testing.T) {
	program := compileRounds(t)
	print := func(args ...string) string {
		out, err := exec.Command(miradorPath, append([]string{"sir"}, append(args, program)...)...).Output()
		if err != nil {
			t.Fatalf("mirador sir %s: %v", args, err)
		}
		return string(out)
	}
	if err := conform.Check(false, []byte(print("--depth", "9", "--placements"))); err != nil {
		t.Error(err)
	}
	source := strings.Split(print("--lines", "testdata/rounds.c"), "\n")
	for _, c := range []struct {
		what, text string
		holds      []string
	}{
		{"the table", print("--tree", "--grep", "^rounds:rounds"), []string{
			"rounds:rounds/loop1 loop rounds.c:15-19 inline kernel trap count, time", "rounds:rounds/loop1/loop1/call.step call rounds.c:19 inline kernel trap count, time"}},
		{"a function with copies", print("--tree", "--grep", "^kept$"), []string{"rounds:kept function", "inline kernel trap also inlined into 1 functions: rounds:main; rounds:kept/all is all of it"}},
		{"JSON", print("--tree", "--json", "--grep", "call"), []string{`"id": "rounds:rounds/loop1/loop1/call.step"`, `"callee": "step"`, `"placements": [ "inline", "kernel", "trap" ]`}},
		{"line 15", source[14], []string{"15 + for (int i = 0; i < n; i++) {", "rounds:rounds/loop1 rounds:rounds/loop1/body"}},
		{"line 19", source[18], []string{"found += step(k);", "rounds:rounds/loop1/loop1/call.step"}},
	} {
		text := strings.Join(strings.Fields(c.text), " ")
		for _, part := range c.holds {
			if !strings.Contains(text, part) {
				t.Errorf("%s has no %q:\n%s", c.what, part, c.text)
			}
		}
	}
	if part := print("--grep", "^step$"); strings.Count(part, "<unit") != 1 {
		t.Errorf("one function matches:\n%s", part)
	}
	if out, err := exec.Command(miradorPath, "sir", "--grep", "(", program).CombinedOutput(); err == nil {
		t.Errorf("a wrong expression: %s", out)
	}
}
