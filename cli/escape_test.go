package cli

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"mirador/examples/targets"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"größer als\t1\n":        "größer als\t1\n",
		"\x1b]0;title\a":         `\x1b]0;title\x07`,
		"\u009b31mred":           `\u009b31mred`,
		"bytes \xff\x9b":         `bytes \xff\x9b`,
		"\r\x7f":                 `\x0d\x7f`,
		"evil\u202etxt.exe":      `evil\u202etxt.exe`,
		"a replacement: \ufffd.": "a replacement: \ufffd.",
	} {
		if got := plain(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
		for size := 1; size <= utf8.UTFMax; size++ { // the text is written in parts of each size
			var out bytes.Buffer
			w := &plainWriter{w: &out}
			for rest := []byte(text + "."); len(rest) > 0; {
				n := min(size, len(rest))
				if _, err := w.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if out.String() != want+"." {
				t.Errorf("%q in parts of %d bytes became %q", text, size, out.String())
			}
		}
	}
	if got := plainCell("a\nb\tc"); got != `a\nb\tc` {
		t.Errorf("a cell: %q", got)
	}
}

// TestArgumentsDoNotReachTheTerminal checks that control characters in a program's arguments do not
// reach a terminal.
func TestArgumentsDoNotReachTheTerminal(t *testing.T) {
	s := startServe(t, os.Geteuid())
	const evil = "\x1b]0;owned\a\x1b[2J\rfake\nrow"
	target := targets.Start(t, "mmul", "--wait", "--counts", evil)
	s.must(t, "", "attach", "--app", "his", strconv.Itoa(target.PID))
	out := s.must(t, "", "apps")
	if strings.ContainsAny(out, "\x1b\a\r") || strings.Count(out, "\n") != 2 || !strings.Contains(out, `\x1b]0;owned\x07`) {
		t.Errorf("apps on a terminal printed %q", out)
	}
	if out := s.must(t, "", "apps", "--json"); !strings.Contains(out, `owned`) || strings.ContainsAny(out, "\x1b\a\r") {
		t.Errorf("apps --json printed %q", out)
	}
	_, errs, status := s.mirador(t, "", "release", "\x1b[2Jnone")
	if status != exitFailed || strings.Contains(errs, "\x1b") {
		t.Errorf("an error: status %d, %q", status, errs)
	}
	cmd := exec.Command(miradorPath, "omis", ": proc_get_info([],0x2)")
	cmd.Env = append(os.Environ(), "MIRADOR_GATEWAY=unix:"+s.socket)
	screen := openScreen(t, openTerminal(t), cmd)
	<-screen.done
	screen.mu.Lock()
	defer screen.mu.Unlock()
	if shown := screen.text.String(); strings.Contains(shown, "\x1b") || !strings.Contains(shown, "owned") {
		t.Errorf("omis showed %q", shown)
	}
}
