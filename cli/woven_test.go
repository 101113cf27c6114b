package cli

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mirador/omis/linux/subject"
)

// weaves makes an application whose requests are woven into a source, and flushes one that counts and times each of
// some regions, as probes from a number on.
func (s *served) weaves(t *testing.T, app, source, out string, regions ...string) (probes []string) {
	t.Helper()
	if status, answer := s.request(t, "POST", "/apps", `{"name":"`+app+`"}`); status != 201 {
		t.Fatal(answer)
	}
	s.mir(t, app, `<sirreq><resource in="file://`+source+`" out="file://`+out+`"/></sirreq>`)
	for _, region := range regions {
		answer := s.mir(t, app, `<instrreq activated="true" flush="true"><codeRegion from="`+app+`:`+region+`"/><metric name="COUNT"/><metric name="WC_TIME"/>`+
			`<measuring><aggregate function="SUM"/><aggregate function="AVERAGE"/></measuring></instrreq>`)
		_, id, _ := strings.Cut(answer, `<probe id="`)
		id, _, _ = strings.Cut(id, `"`)
		probes = append(probes, id)
	}
	return probes
}

// executed checks how often a region was executed and timed. The number of times is their sum divided by their average.
func (s *served) executed(t *testing.T, app, probe string, want int) {
	t.Helper()
	v := s.values(t, app, probe, 4)
	if timed := math.Round(v[2] / v[3]); v[0] != float64(want) || timed != float64(want) || v[2] <= 0 {
		t.Errorf("%s of %s counted %v and timed %v executions, want %d", probe, app, v[0], timed, want)
	}
}

func copied(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// weaveGo weaves regions into a source in Go, whose goroutines change their threads, call themselves and panic.
func weaveGo(t *testing.T, s *served) {
	dir := t.TempDir()
	source, program := filepath.Join(dir, "source.go"), filepath.Join(dir, "woven")
	copied(t, "testdata/woven.go.txt", source)
	probes := s.weaves(t, "gophers", source, filepath.Join(dir, "main.go"), "main.fails/loop1", "main.depth", "main.work/loop1/body")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, filepath.Join(dir, "main.go")).CombinedOutput(); err != nil {
		t.Fatalf("go: %v\n%s", err, out)
	}
	c := tally{t, subject.Start(t, exec.Command(program))}
	c.Line() // it is ready
	if out := s.must(t, "", "attach", strconv.Itoa(c.PID)); !strings.HasPrefix(out, "gophers ") {
		t.Fatalf("the woven program is in another application: %s", out)
	}
	const rounds = 3
	for range rounds {
		c.says("work")
	}
	for i, each := range []int{1, 10 * 6, 10} {
		s.executed(t, "gophers", probes[i], rounds*4*each)
	}
	s.must(t, "", "run", "--app", "third", "--", program) // its standard input is empty
	for app, processes := range map[string]int{"third": 1, "gophers": 2} {
		if _, answer := s.request(t, "GET", "/apps/"+app, ""); strings.Count(answer, `"pid"`) != processes {
			t.Errorf("%s lacks the program that was run: %s", app, answer)
		}
	}
	s.must(t, "", "release", "third")
	s.must(t, "", "release", "gophers")
	c.says("work")
}

// loader opens a library and calls its function as often as it is told.
const loader = `#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
	int (*run)(int) = 0, n;
	puts("ready");
	fflush(stdout);
	while (scanf("%d", &n) == 1) {
		if (!run)
			run = (int (*)(int))dlsym(dlopen(argv[argc - 1], RTLD_NOW), "run");
		printf("%d\n", run(n));
		fflush(stdout);
	}
}
`

// weaveLibrary weaves a region into a library. A process of the application opens it later; another process, which has
// it already, belongs to an application of its own. It returns two processes that have not opened it yet, and a check
// of the executions since then.
func weaveLibrary(t *testing.T, s *served) (without, with tally, check func(more int)) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	source := write("run.c", "int run(int n) {\n\tint s = 0;\n\tfor (int i = 0; i < n; i++)\n\t\ts += i;\n\treturn s;\n}\n")
	main := write("main.c", loader)
	woven, library, program := filepath.Join(dir, "woven.c"), filepath.Join(dir, "run.so"), filepath.Join(dir, "loader")
	probe := s.weaves(t, "library", source, woven, "run/loop1/body")[0]
	for _, args := range [][]string{{"-shared", "-fPIC", "-o", library, woven}, {"-o", program, main, "-ldl"}} {
		if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v\n%s", err, out)
		}
	}
	start := func() tally {
		c := tally{t, subject.Start(t, exec.Command(program, library))}
		c.Line() // it is ready
		return c
	}
	later, before := start(), start()
	without, with = start(), start()
	for _, c := range []tally{later, without, with} {
		s.must(t, "", "attach", "--app", "library", strconv.Itoa(c.PID))
	}
	later.says("7")
	later.says("5")
	s.executed(t, "library", probe, 12)
	before.says("100")
	s.must(t, "", "attach", "--app", "other", strconv.Itoa(before.PID))
	if _, answer := s.request(t, "GET", "/apps/other", ""); !strings.Contains(answer, strconv.Itoa(before.PID)) {
		t.Errorf("the process is not in the application that it was attached to: %s", answer)
	}
	before.says("8")
	later.says("10")
	s.executed(t, "library", probe, 30)
	s.must(t, "", "release", "other")
	return without, with, func(more int) {
		t.Helper()
		s.executed(t, "library", probe, 30+more)
		s.must(t, "", "release", "library")
		before.says("1")
		later.says("1")
	}
}
