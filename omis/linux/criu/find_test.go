//go:build linux

package criu

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// actor is a script in place of CRIU: it records its commands, and at a dump checks that
// the process has a session of its own and no open file but the null device. The file
// "fails" beside it contains the command that is to fail, with a log like CRIU's.
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
	[ "$(cat "$beside/fails")" = hang ] && { sleep 600 & echo $! >"$beside/child"; wait; }
	[ "$(cat "$beside/fails")" != check ] && exit 0
	echo 'Error (criu/vdso.c:1): Unexpected rt vDSO area bounds' >&2
	exit 1
fi
if [ "$what" = dump ]; then
	for fd in "/proc/$pid/fd/"*; do
		[ "$(readlink "$fd")" = /dev/null ] || why="has $(readlink "$fd")"
	done
	[ "$(cut -d ' ' -f 6 "/proc/$pid/stat")" = "$pid" ] || why="has no session of its own"
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

// newActor writes an actor that fails at a command, or at none if fails is "".
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
	// An inherited file, which must not make the trial fail.
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
			for range 2 { // the second result comes from memory
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

// TestFinderGivesUp checks that a check of CRIU which does not end is ended with the processes that it has started, which
// have its output.
func TestFinderGivesUp(t *testing.T) {
	f := Finder{Named: newActor(t, "hang")}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		for !strings.HasSuffix(childOf(f.Named), "\n") && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}()
	if _, err := f.Find(ctx); err == nil || ctx.Err() == nil {
		t.Errorf("error %v of the check, %v of its context", err, ctx.Err())
	}
}

// childOf returns what an actor that hangs says about its child.
func childOf(actor string) string {
	text, _ := os.ReadFile(filepath.Join(filepath.Dir(actor), "child")) // it has not begun yet
	return string(text)
}

// TestFinderLooksAgain checks that a replaced CRIU is tried again.
func TestFinderLooksAgain(t *testing.T) {
	f := Finder{Named: newActor(t, "dump")}
	if _, err := f.Find(context.Background()); err == nil {
		t.Fatal("the actor did not fail")
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

// TestFinderWithoutFile checks that a named file that does not exist is unfit, with the
// reason.
func TestFinderWithoutFile(t *testing.T) {
	f := Finder{Named: filepath.Join(t.TempDir(), program)}
	_, err := f.Find(context.Background())
	var unfit *Unfit
	if !errors.As(err, &unfit) || unfit.Path != f.Named || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("error %v", err)
	}
}
