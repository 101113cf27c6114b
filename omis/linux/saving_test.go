//go:build linux && amd64

package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mirador/omis"
	"mirador/omis/linux/criu"
)

// criuForTests returns the path of the CRIU that scripts/criu has installed or found. If there is none, no
// file has this path, and requests to save are refused.
func criuForTests(t testing.TB) string {
	t.Helper()
	beside, err := filepath.Abs("../../bin/criu")
	if err != nil {
		t.Fatal(err)
	}
	cache, _ := os.UserCacheDir()
	for _, path := range []string{beside, filepath.Join(cache, "mirador", "criu", "criu")} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	if path, err := exec.LookPath("criu"); err == nil {
		return path
	}
	return beside
}

// openSaving opens a node with checkpoints in a folder.
func openSaving(t testing.TB, name, folder string) *Node {
	t.Helper()
	return openNodeWith(t, Config{Name: name, CRIU: criuForTests(t), Checkpoints: folder})
}

// cannotSave reports whether CRIU cannot save processes on this machine. If so, it checks that the node
// refuses requests with the reason, that the target continues unchanged, and that no files remain. It adds
// the reason to the report of untested features.
func cannotSave(t *testing.T, n *Node, c *chain) bool {
	t.Helper()
	unfit := unfitness(t)
	if unfit == nil {
		return false
	}
	wantError(t, n.Checkpoint([]omis.ProcID{c.ID}, "refused"), omis.UnsupportedService, unfit.Error())
	_, err := n.Restore("refused")
	wantError(t, err, omis.UnsupportedService, unfit.Error())
	if left, err := os.ReadDir(n.checkpoints.folder); err != nil || len(left) != 0 {
		t.Errorf("a refused request leaves the files %v, %v", left, err)
	}
	if isNamedByAny(n.checkpoints.folder) {
		t.Error("a CRIU still runs")
	}
	c.grows(t)
	c.check(t, n, c.ID)
	if got := c.word(t, c.continued); got != 0 {
		t.Errorf("the program saw %d SIGCONTs", got)
	}
	confirm(t, unfit, c)
	t.Attr("untested", unfit.Error())
	return true
}

// cannotSaveByEngine does the same, and checks that the engine refuses its services and more requests with the
// reason. The target is p_1.
func cannotSaveByEngine(t *testing.T, h *session, n *Node, c *chain, more ...string) bool {
	t.Helper()
	unfit := unfitness(t)
	if unfit == nil {
		return false
	}
	h.want(fmt.Sprintf(`: node_attach2("here") proc_attach3([],%d,"")`, c.ID.PID), "0 OMIS_OK []\n1 OMIS_OK [] n_1\n2 OMIS_OK [n_1] p_1\n")
	for _, request := range append(more, `: proc_checkpoint([p_1],"refused")`, `: proc_restore("refused")`) {
		if got := h.ask(request); !strings.Contains(got, " OMIS_UNSUPPORTED_SERVICE") || !strings.Contains(got, unfit.Error()) {
			t.Errorf("%s: %s", request, got)
		}
	}
	return cannotSave(t, n, c)
}

// unfitness returns the reason why the CRIU of the tests does not work, nil if it works.
func unfitness(t testing.TB) *criu.Unfit {
	t.Helper()
	_, err := (&criu.Finder{Named: criuForTests(t)}).Find(context.Background())
	if err == nil {
		return nil
	}
	var unfit *criu.Unfit
	if !errors.As(err, &unfit) || unfit.Reason == "" {
		t.Fatalf("the error has no reason: %v", err)
	}
	return unfit
}

// confirm runs CRIU alone to save a target and to restore it. If that works, unfit is wrong. The target does
// not exist any more afterwards.
func confirm(t *testing.T, unfit *criu.Unfit, c *chain) {
	t.Helper()
	folder := t.TempDir()
	if exec.Command(unfit.Path, "dump", "--tree", fmt.Sprint(c.ID.PID), "--images-dir", folder, "--shell-job").Run() != nil {
		c.kill(t)
		return
	}
	c.Cmd.Wait() // CRIU has ended it
	if exec.Command(unfit.Path, "restore", "--images-dir", folder, "--shell-job", "--restore-detached").Run() == nil {
		unix.Kill(c.ID.PID, unix.SIGKILL)
		t.Errorf("%v; but it saves and restores a target", unfit)
	}
}
