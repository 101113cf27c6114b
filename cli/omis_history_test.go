package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestHistoryBetweenSessions checks that a session knows the lines of earlier sessions, unless
// history is off.
func TestHistoryBetweenSessions(t *testing.T) {
	gateway := startServe(t, os.Geteuid())
	state := t.TempDir()
	session := func(line string, args ...string) {
		t.Helper()
		cmd := exec.Command(miradorPath, append([]string{"omis"}, args...)...)
		cmd.Env = append(os.Environ(), "MIRADOR_GATEWAY=unix:"+gateway.socket, "TERM=xterm", "XDG_STATE_HOME="+state)
		s := openScreen(t, openTerminal(t), cmd)
		s.wait("omis> ")
		s.keys(line)
		s.wait("0 OMIS_OK")
		s.wait("omis> ")
		s.keys("\x04")
	}
	session(": print([4711])\r")
	session(": print([4712])\r", "--history", "off")
	session("\x1b[A\r") // cursor up: the first session's line
	text, err := os.ReadFile(filepath.Join(state, "mirador", "omis_history"))
	if err != nil || string(text) != ": print([4711])\n" {
		t.Errorf("%q, %v", text, err)
	}
}
