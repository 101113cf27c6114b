package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is a line of go test -json (see go doc test2json).
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
	ImportPath, FailedBuild       string // the package that is built, and the one that failed to build
	Key, Value                    string // of an attribute
}

// summary counts tests, including subtests, and keeps the output of each until it knows
// whether to print it.
type summary struct {
	out                     io.Writer
	passed, failed, skipped int
	packagesFailed          int // without a failed test: they did not build, or crashed
	output                  map[string][]string
	tests                   map[string]int // by package
	bad                     map[string]bool
	problems                []problem
	untested                []string // what tests could not test on this machine
}

// problem is a failed or skipped test, with the beginning of its output. The summary
// prints it again at the end, because readers of a long report often see only the end.
type problem struct{ what, said string }

// mostLines is the number of output lines repeated at the end.
const mostLines = 15

func newSummary(out io.Writer) *summary {
	return &summary{out: out, output: map[string][]string{}, tests: map[string]int{}, bad: map[string]bool{}}
}

func (s *summary) failures() int { return s.failed + s.packagesFailed }

func (s *summary) green() bool {
	return s.failures() == 0 && s.skipped == 0 && s.passed > 0 && len(s.problems) == 0
}

// read processes the events of one run.
func (s *summary) read(r io.Reader) error {
	for d := json.NewDecoder(r); ; {
		var e event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("cannot read the output of go test: %w", err)
		}
		s.take(e)
	}
}

func (s *summary) take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		s.output[key] = append(s.output[key], e.Output)
	case "build-output":
		fmt.Fprint(s.out, e.Output)
		s.output[e.ImportPath] = append(s.output[e.ImportPath], e.Output)
	case "attr":
		if e.Key == "untested" && !slices.Contains(s.untested, e.Value) {
			s.untested = append(s.untested, e.Value)
		}
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e)
		} else {
			s.endTest(e)
		}
		delete(s.output, key)
	}
}

func (s *summary) endTest(e event) {
	s.tests[e.Package]++
	switch e.Action {
	case "pass":
		s.passed++
		return
	case "skip":
		s.skipped++
	case "fail":
		s.failed++
		s.bad[e.Package] = true
	}
	s.problem(e.Package+" "+e.Test, "%s %s %s", e.Action, e.Package, e.Test)
	fmt.Fprintf(s.out, "--- %s %s %s (%.2fs)\n%s", e.Action, e.Package, e.Test, e.Elapsed, s.text(e.Package+" "+e.Test))
}

func (s *summary) endPackage(e event) {
	switch {
	case e.Action == "fail" && !s.bad[e.Package]:
		s.packagesFailed++
		key := e.Package + " "
		if e.FailedBuild != "" {
			key = e.FailedBuild
		}
		s.problem(key, "fail %s", e.Package)
		fmt.Fprintf(s.out, "FAIL %s: it did not build, or its test program crashed\n%s", e.Package, s.text(e.Package+" "))
	case e.Action == "fail":
		fmt.Fprintf(s.out, "FAIL %s (%.1fs)\n", e.Package, e.Elapsed)
	case s.tests[e.Package] > 0:
		fmt.Fprintf(s.out, "ok   %s: %d tests (%.1fs)\n", e.Package, s.tests[e.Package], e.Elapsed)
	}
	delete(s.tests, e.Package)
	delete(s.bad, e.Package)
}

// problem records a problem with the beginning of its output.
func (s *summary) problem(key, format string, args ...any) {
	var said strings.Builder
	lines := 0
	for line := range strings.Lines(strings.Join(s.output[key], "")) {
		if strings.HasPrefix(line, "===") { // reports that the test runs, pauses or continues
			continue
		}
		if lines++; lines > mostLines {
			said.WriteString("      ...\n")
			break
		}
		fmt.Fprintln(&said, "     ", strings.TrimRight(line, "\n"))
	}
	s.problems = append(s.problems, problem{fmt.Sprintf(format, args...), said.String()})
}

// text returns the output, indented.
func (s *summary) text(key string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.Join(s.output[key], "")) {
		b.WriteString("    " + line)
	}
	return b.String()
}

// broken records a run of go test that failed as a whole.
func (s *summary) broken(args []string, err error) {
	s.problem("", "go test %s: %v", strings.Join(args, " "), err)
}

func (s *summary) print() {
	if len(s.problems) > 0 {
		fmt.Fprintf(s.out, "\nNot green:\n")
	}
	for _, p := range s.problems {
		fmt.Fprintf(s.out, "  %s\n%s", p.what, p.said)
	}
	for _, why := range s.untested {
		fmt.Fprintf(s.out, "\nNot to be tested on this machine: %s\n", why)
	}
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", s.passed, s.failures(), s.skipped)
}
