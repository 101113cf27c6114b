//go:build linux && amd64

package criu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// program is the file's name.
const program = "criu"

// Program is a CRIU that works here.
type Program struct{ path string }

// Path is where it lies.
func (p Program) Path() string { return p.path }

// Find looks for a CRIU that works: the one that is named or, without a name,
// one beside this program's own file, then one in the PATH. The error says of
// each what is wrong with it.
func Find(ctx context.Context, named string) (Program, error) {
	candidates := []string{named}
	if named == "" {
		candidates = installed()
	}
	if len(candidates) == 0 {
		return Program{}, errors.New("there is no program criu, neither beside mirador nor in the PATH")
	}
	var wrong []string
	for _, path := range candidates {
		if err := check(ctx, path); err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		return Program{path}, nil
	}
	return Program{}, errors.New(strings.Join(wrong, "; "))
}

func installed() []string {
	var list []string
	if self, err := os.Executable(); err == nil {
		if beside := filepath.Join(filepath.Dir(self), program); isProgram(beside) {
			list = append(list, beside)
		}
	}
	if path, err := exec.LookPath(program); err == nil {
		list = append(list, path)
	}
	return list
}

func isProgram(path string) bool {
	s, err := os.Stat(path)
	return err == nil && s.Mode().IsRegular() && s.Mode()&0o111 != 0
}

// check has CRIU try what it needs of the kernel.
func check(ctx context.Context, path string) error {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "check").CombinedOutput()
	if err == nil {
		return nil
	}
	why := reason(string(out))
	if why == "" {
		why = err.Error()
	}
	return fmt.Errorf("%s does not work here: %s", path, why)
}
