package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/script/*.txtar. Each script has its own gateway at MIRADOR_GATEWAY,
// unless its name begins with "alone".
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		name := filepath.Base(script)
		t.Run(name, func(t *testing.T) {
			gateway := "unix:/nonexistent/mirador.sock"
			if len(name) < 5 || name[:5] != "alone" {
				gateway = "unix:" + startServe(t, os.Geteuid()).socket
			}
			testscript.Run(t, testscript.Params{
				Files: []string{script},
				Setup: func(e *testscript.Env) error {
					e.Setenv("MIRADOR_GATEWAY", gateway)
					e.Setenv("PROGRAM", miradorPath)
					e.Setenv("PATH", filepath.Dir(miradorPath)+string(filepath.ListSeparator)+e.Getenv("PATH"))
					return nil
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
			})
		})
	}
}

// exits runs a command and compares its exit status: exits STATUS COMMAND…
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		got = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%q: exit status %d, want %d", args[1:], got, want)
	}
}
