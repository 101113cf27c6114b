//go:build linux && amd64

package linux

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"mirador/omis"
)

var _ omis.Checkpointer = (*Node)(nil)

// listName is the file of a checkpoint that names its processes.
const listName = "processes"

// Checkpoint: see omis.Checkpointer. CRIU does it, for each process with its
// descendants. It traces them itself, and so must nobody else.
func (n *Node) Checkpoint(ps []omis.ProcID, name string) (err error) {
	criu, dir, err := n.checkpointer(name)
	if err != nil {
		return err
	}
	for _, p := range ps {
		if n.owner(p) != nil {
			return omis.Errorf(omis.ParameterError, "cannot save process %d: it is stopped, or events of it are watched; CRIU has to trace it alone", p.PID)
		}
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return omis.Errorf(omis.OSError, "cannot save the checkpoint %s: %v", name, err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return omis.Errorf(omis.ParameterError, "cannot save the checkpoint %s: %v", name, unwrapPath(err))
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	var list strings.Builder
	for _, p := range ps {
		pid := strconv.Itoa(p.PID)
		images := filepath.Join(dir, pid)
		if err := os.Mkdir(images, 0o700); err != nil {
			return omis.Errorf(omis.OSError, "cannot save the checkpoint %s: %v", name, err)
		}
		if err := run(criu, images, "dump", "--tree", pid, "--leave-running"); err != nil {
			return omis.Errorf(omis.OSError, "cannot save process %d: %v", p.PID, err)
		}
		fmt.Fprintln(&list, pid)
	}
	if err := os.WriteFile(filepath.Join(dir, listName), []byte(list.String()), 0o600); err != nil {
		return omis.Errorf(omis.OSError, "cannot save the checkpoint %s: %v", name, err)
	}
	return nil
}

// Restore: see omis.Checkpointer. Processes get the process ids they had, which
// must be free.
func (n *Node) Restore(name string) ([]omis.ProcID, error) {
	criu, dir, err := n.checkpointer(name)
	if err != nil {
		return nil, err
	}
	list, err := os.ReadFile(filepath.Join(dir, listName))
	if err != nil {
		return nil, omis.Errorf(omis.ParameterError, "there is no checkpoint %s", name)
	}
	var restored []omis.ProcID
	for _, line := range strings.Fields(string(list)) {
		if err := run(criu, filepath.Join(dir, line), "restore", "--restore-detached"); err != nil {
			return restored, omis.Errorf(omis.OSError, "cannot restore process %s: %v", line, err)
		}
		pid, err := strconv.Atoi(line)
		if err != nil {
			return restored, omis.Errorf(omis.OSError, "the checkpoint %s is damaged: %q is no process", name, line)
		}
		p, err := n.Identify(pid)
		if err != nil {
			return restored, err
		}
		restored = append(restored, p)
	}
	return restored, nil
}

// checkpointer finds a CRIU that works, and the folder of a checkpoint.
func (n *Node) checkpointer(name string) (criu, dir string, err error) {
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`).MatchString(name) {
		return "", "", omis.Errorf(omis.ParameterError, "a checkpoint cannot be called %q: letters, digits, dots, dashes and underscores make a name", name)
	}
	criu, err = exec.LookPath("criu")
	if err != nil {
		return "", "", omis.Errorf(omis.UnsupportedService, "processes are saved and restored by CRIU, and no program criu is installed")
	}
	if out, err := exec.Command(criu, "check").CombinedOutput(); err != nil {
		return "", "", omis.Errorf(omis.UnsupportedService, "processes are saved and restored by CRIU, which does not work here: %s", lastError(out))
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", "", omis.Errorf(omis.OSError, "there is no folder for checkpoints: %v", err)
	}
	return criu, filepath.Join(cache, "mirador", "checkpoints", name), nil
}

func run(criu, images string, args ...string) error {
	args = append(args, "--images-dir", images, "--shell-job", "--tcp-established", "--file-locks")
	if out, err := exec.Command(criu, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("criu: %s", lastError(out))
	}
	return nil
}

// lastError is what matters of what CRIU says.
func lastError(out []byte) string {
	last := "it fails without a word"
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		if line := strings.TrimSpace(s.Text()); line != "" {
			last = line
			if strings.Contains(line, "Error") {
				return line
			}
		}
	}
	return last
}
