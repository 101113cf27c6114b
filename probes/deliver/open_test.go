package deliver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOpen checks that files are opened with the rights of a user, and that only regular ones are.
func TestOpen(t *testing.T) {
	const uid = 65534
	dir, err := os.MkdirTemp("/var/tmp", "deliver") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	secret, pipe, public := filepath.Join(dir, "secret"), filepath.Join(dir, "pipe"), filepath.Join(dir, "public")
	if err := errors.Join(os.WriteFile(public, nil, 0o644), os.WriteFile(secret, []byte("text"), 0o600), syscall.Mkfifo(pipe, 0o666), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	own := User{UID: os.Geteuid()}
	for path, user := range map[string]User{secret: own, public: {UID: uid}} {
		f, err := Open(user, path)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if _, err := Open(own, pipe); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe: %v", err)
	}
	if f, err := Open(User{UID: uid}, secret); err == nil {
		f.Close()
		t.Error("another user may read the file")
	}
	if _, err := Open(User{UID: -1}, secret); err == nil {
		t.Error("a caller without a user may read the file")
	}
}
