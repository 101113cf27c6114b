package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mirador/examples/targets"
)

// refuses runs a gateway that must not start, and returns its output.
func refuses(t *testing.T, dir, data string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, miradorPath, "serve", "--socket", filepath.Join(dir, "m.sock"), "--listen", "off", "--data", data)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	out, stdout := new(strings.Builder), new(readyWatch)
	stdout.stop = cancel
	cmd.Stderr, cmd.Stdout = out, stdout
	err := cmd.Run()
	if stdout.ready || err == nil {
		t.Fatalf("the gateway started: %v\n%s", err, out)
	}
	return out.String()
}

// readyWatch stops a gateway that becomes ready.
type readyWatch struct {
	stop  func()
	ready bool
}

func (w *readyWatch) Write(p []byte) (int, error) {
	w.ready = true
	w.stop()
	return len(p), nil
}

// TestPreparedDataDirectory checks that root's gateway refuses a data directory that another user
// has prepared.
func TestPreparedDataDirectory(t *testing.T) {
	const secret = "0123456789abcdef0123456789abcdef"
	for _, c := range []struct {
		name    string
		prepare func(data, precious string) error
		says    string
	}{
		{"of another user", func(data, _ string) error {
			return errors.Join(os.Mkdir(data, 0o700), os.WriteFile(filepath.Join(data, "token"), []byte(secret), 0o600),
				os.Chown(data, nobody, nobody), os.Chown(filepath.Join(data, "token"), nobody, nobody))
		}, "belongs to "},
		{"that everybody may write to", func(data, _ string) error {
			return errors.Join(os.Mkdir(data, 0o700), os.Chmod(data, 0o777))
		}, "can be written to by other users"},
		{"with a token of another user", func(data, _ string) error {
			return errors.Join(os.Mkdir(data, 0o700), os.WriteFile(filepath.Join(data, "token"), []byte(secret), 0o600), os.Chown(filepath.Join(data, "token"), nobody, nobody))
		}, "token belongs to "},
		{"with a link in place of the lock", func(data, precious string) error {
			return errors.Join(os.Mkdir(data, 0o700), os.Symlink(precious, filepath.Join(data, "lock")))
		}, "lock is a symbolic link"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := targets.SharedDir(t)
			data, precious := filepath.Join(dir, "data"), filepath.Join(dir, "precious")
			if err := errors.Join(os.WriteFile(precious, []byte("precious"), 0o600), c.prepare(data, precious)); err != nil {
				t.Fatal(err)
			}
			if got := refuses(t, dir, data); !strings.Contains(got, c.says) {
				t.Errorf("the gateway printed %q, want %q", got, c.says)
			}
			if text, err := os.ReadFile(precious); err != nil || string(text) != "precious" {
				t.Errorf("the file behind the link holds %q, %v", text, err)
			}
		})
	}
}

// TestLinkInPlaceOfTheNewJournal checks that the gateway removes a symbolic link in place of the
// journal's temporary file, and does not follow it.
func TestLinkInPlaceOfTheNewJournal(t *testing.T) {
	s := startServe(t, os.Geteuid())
	s.end(t)
	precious, link := filepath.Join(s.dir, "precious"), filepath.Join(s.data(), "journal.new")
	if err := errors.Join(os.WriteFile(precious, []byte("precious"), 0o600), os.Symlink(precious, link)); err != nil {
		t.Fatal(err)
	}
	s.await(t, s.begin(t))
	if text, err := os.ReadFile(precious); err != nil || string(text) != "precious" {
		t.Errorf("the file behind the link holds %q, %v", text, err)
	}
}
