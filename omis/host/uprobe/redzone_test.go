//go:build linux

package uprobe

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestCheckNop checks that CheckNop has a result on this kernel, and that its program
// computes correct results without a uprobe.
func TestCheckNop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nop")
	if err := os.WriteFile(path, nopELF(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command(path).Run(); err != nil {
		t.Errorf("without a uprobe: %v", err)
	}
	if err := checkAt(nopLeaf); err != nil {
		t.Errorf("a uprobe on another instruction: %v", err)
	}
	begin := time.Now()
	err := CheckNop()
	t.Logf("%v, after %v", err, time.Since(begin))
	if err != nil && !errors.Is(err, ErrRedZone) {
		t.Error(err)
	}
	if again := CheckNop(); !errors.Is(again, err) {
		t.Errorf("first %v, and then %v", err, again)
	}
}
