//go:build linux && amd64

package hold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

const delve = "github.com/go-delve/delve"

// obtainDelve finds Delve's command, or builds the version of it whose libraries this
// program uses. Delve's own dependencies are not among this module's; if they cannot be
// downloaded, Delve is missing.
func obtainDelve(ctx context.Context, dir string) (path string, err error) {
	if path, err := exec.LookPath("dlv"); err == nil {
		return path, nil
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", errors.New("this program contains no build information")
	}
	for _, m := range info.Deps {
		if m.Path == delve {
			return install(ctx, dir, delve+"/cmd/dlv@"+m.Version)
		}
	}
	return "", errors.New("this program was built without its libraries")
}

// install builds a command of another module without changing this module's go.mod.
func install(ctx context.Context, dir, command string) (path string, err error) {
	const download = 3 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, download)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "install", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOBIN="+dir)
	if msg, err := cmd.CombinedOutput(); err != nil {
		first, _, _ := strings.Cut(string(msg), "\n")
		return "", fmt.Errorf("go install %s: %w: %s", command, err, first)
	}
	return filepath.Join(dir, "dlv"), nil
}

// byDelve uses a conditional breakpoint of Delve whose condition is never true, in a Go
// program: in a C program Delve is even slower.
func (b *bench) byDelve() (*contender, error) {
	const name = "Delve, condition"
	if b.noDelve != nil {
		return b.without(name, b.noDelve), nil
	}
	t, err := startTarget(b.program("gotarget"))
	if err != nil {
		return nil, err
	}
	script := filepath.Join(b.dir, "delve")
	content := fmt.Sprintf("break work *%#x\ncondition work x == 1\ncontinue\n", t.work)
	if err := os.WriteFile(script, []byte(content), 0o600); err != nil {
		t.Kill()
		return nil, err
	}
	cmd := exec.Command(b.dlv, "attach", fmt.Sprint(t.PID), "--init", script, "--allow-non-terminal-interactive=true")
	return beside(&contender{name: name, hits: 100, target: t}, cmd, "Breakpoint work set")
}
