//go:build linux

package criu

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// actor plays a CRIU: it notes what it is asked for, and at a dump looks whether
// the process has a session of its own and no file but the null device. What it
// fails at, with a log like CRIU's, stands in the file "fails" beside it.
const actor = `#!/bin/sh
beside=$(dirname "$0")
what=$1
echo "$what" >>"$beside/asked"
while [ $# -gt 0 ]; do
	case $1 in
	--images-dir) folder=$2 ;;
	--log-file) log=$2 ;;
	--tree) pid=$2 ;;
	esac
	shift
done
if [ "$what" = check ]; then
	[ "$(cat "$beside/fails")" != check ] && exit 0
	echo 'Error (criu/vdso.c:1): Unexpected rt vDSO area bounds' >&2
	exit 1
fi
if [ "$what" = dump ]; then
	for fd in "/proc/$pid/fd/"*; do
		[ "$(readlink "$fd")" = /dev/null ] || why="has $(readlink "$fd")"
	done
	[ "$(cut -d ' ' -f 6 "/proc/$pid/stat")" = "$pid" ] || why="has somebody's session"
fi
[ "$(cat "$beside/fails")" != "$what" ] || why="lost the thread"
if [ -n "$why" ]; then
	echo "(00.1) Looks around" >"$folder/$log"
	echo "(00.2) Error (criu/files.c:7): $why" >>"$folder/$log"
	echo "(00.3) Error (criu/cr.c:8): FAILED." >>"$folder/$log"
	exit 1
fi
[ "$what" = dump ] && exit 0
sleep 60 >/dev/null 2>&1 &
echo $! >"$folder/restored.pid"
`

// newActor makes an actor that fails at something, "" at nothing.
func newActor(t *testing.T, fails string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), program)
	for file, text := range map[string]string{path: actor, filepath.Join(filepath.Dir(path), "fails"): fails} {
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestFinder(t *testing.T) {
	// A legacy, which must be no reason to fail.
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	for _, c := range []struct{ fails, does, reason, log, asked string }{
		{"", "", "", "", "check dump restore"},
		{"check", "does not work here", "Unexpected rt vDSO area bounds", "vdso.c", "check"},
		{"dump", "cannot save a process here", "lost the thread", "Looks around", "check dump"},
		{"restore", "saves processes here, but cannot restore them", "lost the thread", "Looks around", "check dump restore"},
	} {
		t.Run("fails at "+c.fails, func(t *testing.T) {
			f := Finder{Named: newActor(t, c.fails)}
			for range 2 { // the second time from memory
				found, err := f.Find(context.Background())
				var unfit *Unfit
				switch {
				case c.fails == "":
					if err != nil || found.Path() != f.Named {
						t.Errorf("found %q, %v", found.Path(), err)
					}
				case !errors.As(err, &unfit):
					t.Errorf("error %v", err)
				case unfit.Path != f.Named || unfit.Does != c.does || unfit.Reason != c.reason || !strings.Contains(unfit.Log, c.log):
					t.Errorf("unfit: %+v", unfit)
				case err.Error() != f.Named+" "+c.does+": "+c.reason:
					t.Error(err)
				}
			}
			asked, _ := os.ReadFile(filepath.Join(filepath.Dir(f.Named), "asked"))
			if got := strings.Join(strings.Fields(string(asked)), " "); got != c.asked {
				t.Errorf("asked for %q, not %q", got, c.asked)
			}
		})
	}
}

// TestFinderLooksAgain: a CRIU that is replaced is another.
func TestFinderLooksAgain(t *testing.T) {
	f := Finder{Named: newActor(t, "dump")}
	if _, err := f.Find(context.Background()); err == nil {
		t.Fatal("it was to fail")
	}
	if err := os.Rename(newActor(t, ""), f.Named); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(f.Named), "fails")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Find(context.Background()); err != nil {
		t.Error(err)
	}
}

// A named file that does not exist is unfit, with the reason.
func TestFinderWithoutFile(t *testing.T) {
	f := Finder{Named: filepath.Join(t.TempDir(), program)}
	_, err := f.Find(context.Background())
	var unfit *Unfit
	if !errors.As(err, &unfit) || unfit.Path != f.Named || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("error %v", err)
	}
}
