package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// TestGuideFromGo runs the program of the user guide.
func TestGuideFromGo(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../doc/user-guide.md")
	if err != nil {
		t.Fatal(err)
	}
	program := regexp.MustCompile("(?s)```go\n(.*?)```\n").FindSubmatch(guide)
	if program == nil {
		t.Fatal("the user guide has no program in Go")
	}
	file := filepath.Join(t.TempDir(), "calls.go")
	if err := os.WriteFile(file, program[1], 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, os.Geteuid())
	c := startTally(t)
	c.says("go")
	cmd := exec.Command("go", "run", file, strconv.Itoa(c.PID), "tally:work")
	cmd.Env = append(os.Environ(), "MIRADOR_GATEWAY=unix:"+s.socket)
	out, err := cmd.CombinedOutput()
	c.says("stop")
	if err != nil || !regexp.MustCompile(`^p_1 COUNT [1-9][0-9]*\np_1 WC_TIME 0[.][0-9]+\n$`).Match(out) {
		t.Errorf("%v\n%s", err, out)
	}
	if left := s.must(t, "", "probe", "list", "--json"); left != "[]\n" {
		t.Errorf("left is %s", left)
	}
}
