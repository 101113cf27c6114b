package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGateStore fills a history by one run, copies its entry, and compares with it: equal counts
// pass, another one fails, and other machines are refused.
func TestGateStore(t *testing.T) {
	t.Parallel()
	g := newGated(t, "-DEXTRA=1")
	g.share(t)
	gate := fmt.Sprintf(countPrice, `g:exact="true"`)
	check := func(head string, status int, want string, args ...string) {
		t.Helper()
		out, errs, got := g.run(t, gate, append([]string{"--head=" + head + "/work 1000", "--store=perf", "--commit=abc", "--label=branch=main"}, args...)...)
		if got != status || !strings.Contains(out+errs, want) {
			t.Errorf("status %d, want %d and %q\n%s%s", got, status, want, out, errs)
		}
	}
	entries := func() []string {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(g.dir, "perf", "*-abc"))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	check("base", exitGateUnclear, "no value to compare with")
	if len(entries()) != 1 {
		t.Fatalf("%q", entries())
	}
	check("base", exitOK, "PASSED")
	check("head", exitGateFailed, "1001 is more than 1000", "--no-record")
	if len(entries()) != 2 {
		t.Errorf("%q", entries())
	}
	shown := func(status int, want string, args ...string) {
		t.Helper()
		cmd := exec.Command(miradorPath, append([]string{"gate", "history"}, args...)...)
		cmd.Dir = g.dir
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != status || !strings.Contains(string(out), want) {
			t.Errorf("%q: status %d, want %d and %q\n%s", args, got, status, want, out)
		}
	}
	shown(exitOK, "COUNT of work:price", "--store=perf", "--svg=h.svg")
	if text, err := os.ReadFile(filepath.Join(g.dir, "h.svg")); err != nil || !strings.Contains(string(text), "<circle") {
		t.Errorf("%v\n%s", err, text)
	}
	for _, entry := range entries() {
		path := filepath.Join(entry, "about.json")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), "processors", "cores", 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check("base", exitFailed, "are of other machines")
	check("base", exitOK, "PASSED", "--any-machine")
	shown(exitOK, "2 of 3 entries are of other machines", "--store=perf")
	shown(exitUsage, "--store is needed")
	shown(exitFailed, "has no entries", "--store=none")
}
