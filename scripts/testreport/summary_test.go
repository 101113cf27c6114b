package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func summarise(t *testing.T, events string) (*summary, string) {
	t.Helper()
	var out bytes.Buffer
	s := newSummary(&out)
	if err := s.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	s.print()
	return s, out.String()
}

func TestSummary(t *testing.T) {
	const pass = `{"Action":"pass","Package":"p","Test":"A"}{"Action":"pass","Package":"p"}`
	cases := []struct {
		name, events string
		green        bool
		says         []string
	}{
		{"green", pass, true, []string{"ok   p: 1 tests", "1 passed, 0 failed, 0 skipped"}},
		{"nothing ran", `{"Action":"skip","Package":"p"}`, false, []string{"0 passed, 0 failed, 0 skipped"}},
		{"a skip", pass + `{"Action":"output","Package":"q","Test":"S","Output":"why\n"}{"Action":"skip","Package":"q","Test":"S"}{"Action":"pass","Package":"q"}`,
			false, []string{"skip q S", "    why", "1 passed, 0 failed, 1 skipped"}},
		{"a failure", pass + `{"Action":"output","Package":"q","Test":"F","Output":"q_test.go:3: no\n"}{"Action":"fail","Package":"q","Test":"F"}{"Action":"fail","Package":"q"}`,
			false, []string{"q_test.go:3: no", "FAIL q", "1 passed, 1 failed, 0 skipped"}},
		{"a long failure", pass + `{"Action":"output","Package":"q","Test":"F","Output":"=== RUN F\n"}` + lines(20) + `{"Action":"fail","Package":"q","Test":"F"}{"Action":"fail","Package":"q"}`,
			false, []string{"Not green:\n  fail q F\n      line 1\n      line 2\n", "      line 15\n      ...\n1 passed"}},
		{"an attribute", `{"Action":"attr","Package":"p","Test":"A","Key":"untested","Value":"no ships here"}` + pass, true, []string{"Not to be tested on this machine: no ships here\n1 passed"}},
		{"no build", pass + `{"ImportPath":"q","Action":"build-output","Output":"q.go:1: syntax\n"}{"Action":"fail","Package":"q","FailedBuild":"q"}`,
			false, []string{"Not green:\n  fail q\n      q.go:1: syntax\n", "did not build", "1 passed, 1 failed, 0 skipped"}},
		{"a crash", `{"Action":"output","Package":"q","Output":"panic: x\n"}{"Action":"fail","Package":"q"}`,
			false, []string{"panic: x", "0 passed, 1 failed"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, out := summarise(t, c.events)
			if s.green() != c.green {
				t.Errorf("green is %v", s.green())
			}
			for _, want := range c.says {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
}

// lines returns the events of a test with n lines of output.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"Action":"output","Package":"q","Test":"F","Output":"line %d\n"}`, i+1)
	}
	return b.String()
}

func TestGroups(t *testing.T) {
	got := groups([]string{"a", "b", "--", "-race", "c"})
	if len(got) != 2 || len(got[0]) != 2 || len(got[1]) != 2 || got[1][0] != "-race" {
		t.Errorf("%q", got)
	}
}
