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

// criuForTests returns the path of the CRIU that scripts/criu has made sure of. Where the
// script could not get one, no file has this path, and requests to save are refused.
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

// openSaving opens a node that keeps checkpoints in a folder.
func openSaving(t testing.TB, name, folder string) *Node {
	t.Helper()
	return openNodeWith(t, Config{Name: name, CRIU: criuForTests(t), Checkpoints: folder})
}

// cannotSave tells whether CRIU cannot save processes on this machine. If so it
// tests that the node says just that, that the target goes on as if nobody had
// asked, and that nothing is left behind; and it has the report of the tests say
// that no more was tested, and why.
func cannotSave(t *testing.T, n *Node, c *chain) bool {
	t.Helper()
	unfit := unfitness(t)
	if unfit == nil {
		return false
	}
	wantError(t, n.Checkpoint([]omis.ProcID{c.ID}, "refused"), omis.UnsupportedService, unfit.Error())
	_, err := n.Restore("refused")
	wantError(t, err, omis.UnsupportedService, unfit.Error())
	if left, err := os.ReadDir(n.checkpoints); err != nil || len(left) != 0 {
		t.Errorf("what was refused leaves %v, %v", left, err)
	}
	if isNamedByAny(n.checkpoints) {
		t.Error("a CRIU is left")
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

// cannotSaveInHouse is the same, for the services of an engine, and for more
// requests that are to be refused for that reason. The target is p_1.
func cannotSaveInHouse(t *testing.T, h *house, n *Node, c *chain, more ...string) bool {
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

// unfitness is what is wrong with the CRIU of the tests, nil: nothing.
func unfitness(t testing.TB) *criu.Unfit {
	t.Helper()
	_, err := (&criu.Finder{Named: criuForTests(t)}).Find(context.Background())
	if err == nil {
		return nil
	}
	var unfit *criu.Unfit
	if !errors.As(err, &unfit) || unfit.Reason == "" {
		t.Fatalf("no reason: %v", err)
	}
	return unfit
}

// confirm has CRIU save, and restore if it can, a target without any of our code:
// that it works after all is a mistake of ours. The target is gone afterwards.
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
