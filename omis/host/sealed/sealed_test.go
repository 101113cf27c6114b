//go:build linux

package sealed

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func memfd(t *testing.T, flags int) (*os.File, string) {
	t.Helper()
	fd, err := unix.MemfdCreate("test", flags|unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "test")
	t.Cleanup(func() { f.Close() })
	return f, fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)
}

func TestMemoryIsOpenedAndSealed(t *testing.T) {
	_, path := memfd(t, unix.MFD_ALLOW_SEALING)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Fresh(f); err != nil {
		t.Error(err)
	}
	if err := f.Truncate(8192); err != nil {
		t.Fatal(err)
	}
	if Check(f, 8192) == nil {
		t.Error("memory without seals is accepted")
	}
	if err := Seal(f, 4096); err == nil {
		t.Error("memory of another size is accepted")
	}
	if err := Check(f, 8192); err != nil {
		t.Error(err)
	}
	if f.Truncate(0) == nil || Fresh(f) == nil {
		t.Error("a sealed file can still be truncated")
	}
	if again, err := Open(path); err != nil {
		t.Error(err)
	} else {
		again.Close()
	}
}

// TestNothingElseIsOpened replaces the memory file by other things. Opening a FIFO would
// block, and a file of another user would be truncated.
func TestNothingElseIsOpened(t *testing.T) {
	dir := t.TempDir()
	fifo, text := filepath.Join(dir, "fifo"), filepath.Join(dir, "text")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(text, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	open, err := os.Open(text)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	_, unsealable := memfd(t, 0)
	link := func(f *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd()) }
	for _, path := range []string{fifo, text, link(open), unsealable, "/dev/null", dir} {
		if f, err := Open(path); err == nil {
			f.Close()
			t.Errorf("%s was opened", path)
		}
	}
	if now, err := os.ReadFile(text); err != nil || string(now) != "precious" {
		t.Errorf("the file has %q, %v", now, err)
	}
}
