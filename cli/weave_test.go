package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mirador/omis/linux/subject"
)

// TestWeave weaves regions into sources in C, Fortran and Java by requests, builds the program, and attaches to it: the probes appear, count
// as the program does, and the program survives a SIGKILL of the gateway.
func TestWeave(t *testing.T) {
	s := startServe(t, os.Geteuid())
	dir := t.TempDir()
	plain, err := filepath.Abs("testdata/tally.c")
	if err != nil {
		t.Fatal(err)
	}
	file, leaf, hops := filepath.Join(dir, "tally.c"), filepath.Join(dir, "leaf.f90"), filepath.Join(dir, "Hops.java")
	if status, answer := s.request(t, "POST", "/apps", `{"name":"weaving"}`); status != 201 || !strings.Contains(answer, `"empty"`) {
		t.Fatal(status, answer)
	}
	reply := s.mir(t, "weaving", `<sirreq><resource in="file://`+plain+`" out="file://`+file+`"/><resource in="file://`+filepath.Join(filepath.Dir(plain), "leaf.f90")+`" out="file://`+leaf+`"/><resource in="file://`+filepath.Join(filepath.Dir(plain), "Hops.java")+`" out="file://`+hops+`"/></sirreq>`)
	if !strings.Contains(reply, `out="file://`+file+`"`) || !strings.Contains(reply, `id="weaving:some/loop1/body"`) {
		t.Fatal(reply)
	}
	measure := func(region, more string) (string, int) {
		out, _, status := s.mirador(t, `<instrreq activated="true"`+more+`><codeRegion from="`+region+`"/><metric name="COUNT"/><process id="*"/></instrreq>`, "post", "--app", "weaving", "-")
		return out, status
	}
	for _, region := range []string{"weaving:main/loop9", "weaving:main/loop2/if2.none"} {
		if out, status := measure(region, ""); status == 0 {
			t.Errorf("%s is woven: %s", region, out)
		}
	}
	measure("weaving:lasting/loop1/if1", "")
	if out, status := measure("weaving:some/loop1/body", ` flush="true"`); status != 0 {
		t.Fatal(out)
	}
	measure("weaving:Hops.hop(int)", "")
	if out, status := measure("weaving:leaf", ` flush="true"`); status != 0 {
		t.Fatal(out)
	}
	value := `<ctrlreq action="VALUE"><probe id="probe-2"/></ctrlreq>`
	if out, _, status := s.mirador(t, value, "post", "--app", "weaving", "-"); status == 0 || !strings.Contains(out, "no process of application weaving is built from it yet") {
		t.Errorf("before the program runs: %s", out)
	}
	program := filepath.Join(dir, "woven")
	if out, err := exec.Command("gfortran", "-O2", "-DFORTRAN", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", program, file, leaf, filepath.Join(dir, "leaf.mirador.s")).CombinedOutput(); err != nil {
		t.Fatalf("gfortran: %v\n%s", err, out)
	}
	if out, err := exec.Command("javac", "-J-XX:TieredStopAtLevel=1", "-Xlint:all", "-Werror", "-d", dir, hops, filepath.Join(dir, "HopsMirador.java")).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	java := tally{t, subject.Start(t, exec.Command("java", "-XX:+UseSerialGC", "-cp", dir, "Hops"))}
	c := tally{t, subject.Start(t, exec.Command(program))}
	c.Line() // it is ready
	if out := s.must(t, "", "attach", strconv.Itoa(c.PID)); !strings.HasPrefix(out, "weaving ") {
		t.Fatalf("the woven program is in another application: %s", out)
	}
	java.Line() // it is ready, and has loaded the library with its regions
	s.must(t, "", "attach", "--app", "weaving", strconv.Itoa(java.PID))
	compare := func() {
		t.Helper()
		if calls, counted := c.says("stop"), s.values(t, "weaving", "probe-2", 1); float64(calls) != counted[0] || calls == 0 {
			t.Errorf("the loop's body was executed %d times, and counted %v times", calls, counted)
		} else if inFortran := s.values(t, "weaving", "probe-4", 1); inFortran[0] != counted[0] {
			t.Errorf("the loop's body was executed %v times, and the procedure in Fortran that it calls %v times", counted, inFortran)
		}
		if calls, counted := java.says("hop"), s.values(t, "weaving", "probe-3", 1); float64(calls) != counted[0] {
			t.Errorf("the method in Java was called %d times, and counted %v times", calls, counted)
		}
	}
	work := func() {
		t.Helper()
		before := c.says("go")
		eventually(t, "the program works", func() bool { return c.says("go") > before })
		java.says("hop")
	}
	work()
	compare()
	work()
	weaveGo(t, s)
	without, with, check := weaveLibrary(t, s)
	s.kill(t)
	work()
	without.says("3")
	s.await(t, s.begin(t))
	work()
	with.says("4")
	check(4)
	compare()
	var apps []struct{ Name, State string }
	if _, answer := s.request(t, "GET", "/apps", ""); json.Unmarshal([]byte(answer), &apps) != nil || len(apps) != 1 || apps[0].State != "running" {
		t.Errorf("the applications are %s", answer)
	}
	s.must(t, "", "release", "weaving")
	work()
}
