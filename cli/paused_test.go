package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	gateway "mirador/http"
	"mirador/omis/host/proc"
	"mirador/omis/linux/subject"
	"mirador/probes"
)

// early are programs of testdata/early, which work before main, and then report their calls.
type early struct {
	name, path string
	function   string   // the unit that the program calls
	library    string   // the unit of the library that it calls, "" if it has none
	env        []string // of the run command
	where      string   // where it is paused
}

const (
	beforeConstructors = "before its first constructor"
	beforeAnything     = "before its first instruction"
)

// earlyLibrary is the path of the library of the programs.
type earlyLibrary string

const earlyMain = "testdata/early/main.c"

func compileLibrary(t *testing.T) earlyLibrary {
	t.Helper()
	path := filepath.Join(t.TempDir(), "libearly.so")
	compile(t, "gcc", "-O1", "-shared", "-fPIC", "-Wl,-soname,libearly.so", "-o", path, "testdata/early/library.c")
	return earlyLibrary(path)
}

// early compiles a program that is linked with the library.
func (l earlyLibrary) early(t *testing.T, name string, args ...string) early {
	t.Helper()
	args = append(args, "-Wl,--no-as-needed", "-L"+filepath.Dir(string(l)), "-learly", "-Wl,-rpath,"+filepath.Dir(string(l)))
	return early{name: name, path: subject.Compile(t, name, args...), function: name + ":work", library: "libearly.so:library_work", where: beforeConstructors}
}

// compilePIE compiles the program that most others are variants of.
func compilePIE(t *testing.T) early {
	t.Helper()
	return compileLibrary(t).early(t, "pie", earlyMain)
}

// compileAlone compiles a program without the library.
func compileAlone(t *testing.T, name string, args ...string) early {
	t.Helper()
	return early{name: name, path: subject.Compile(t, name, append(args, earlyMain)...), function: name + ":work", where: beforeAnything}
}

// compileEarly compiles programs that are linked in all ways. The first few are paused by different means.
func compileEarly(t *testing.T) []early {
	t.Helper()
	library := compileLibrary(t)
	bound := library.early(t, "bound", earlyMain, "-Wl,-z,lazy")
	bound.env = []string{"LD_BIND_NOW=1"}
	preloaded := compileAlone(t, "preloaded")
	preloaded.library, preloaded.where, preloaded.env = "libearly.so:library_work", beforeConstructors, []string{"LD_PRELOAD=" + string(library)}
	pie := library.early(t, "pie", earlyMain)
	script := pie
	script.name, script.path = "script", filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script.path, []byte("#!"+pie.path+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	other := compileAlone(t, "other")
	other.where = beforeConstructors
	if err := errors.Join(os.Chown(other.path, nobody, nobody), os.Chmod(other.path, 0o755|fs.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	return []early{
		pie, compileAlone(t, "static", "-static"), compileGo(t, "gocgo", "1"), lateEarly(t, string(library)),
		script, other, library.early(t, "nopie", "-no-pie", earlyMain), library.early(t, "statics", "testdata/early/statics.cc"), bound, preloaded,
		compileAlone(t, "staticpie", "-static-pie"), compileMusl(t), compileMusl(t, "-static"), compileGo(t, "gostatic", "0"),
	}
}

func compile(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

func compileMusl(t *testing.T, more ...string) early {
	t.Helper()
	e := early{name: "musl" + strings.Join(more, ""), function: "muslc:work", where: beforeConstructors}
	e.path = filepath.Join(t.TempDir(), "muslc")
	if len(more) > 0 {
		e.where = beforeAnything
	}
	compile(t, "musl-gcc", append(more, "-O1", "-o", e.path, "testdata/early/main.c")...)
	return e
}

func compileGo(t *testing.T, name, cgo string) early {
	t.Helper()
	e := early{name: name, path: filepath.Join(t.TempDir(), name), function: name + ":main.work", where: beforeAnything}
	if cgo == "1" {
		e.where = beforeConstructors
	}
	cmd := exec.Command("go", "build", "-o", e.path, "./testdata/early/golang")
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return e
}

// lateEarly compiles a program for a dynamic linker that does not report what it loads: a copy
// of the system's that lacks a name.
func lateEarly(t *testing.T, library string) early {
	t.Helper()
	linker, err := os.ReadFile("/lib64/ld-linux-x86-64.so.2")
	if err != nil {
		t.Fatal(err)
	}
	mute := filepath.Join(t.TempDir(), "mute.so")
	if err := os.WriteFile(mute, bytes.ReplaceAll(linker, []byte("_dl_debug_state"), []byte("_dl_debug_STATE")), 0o755); err != nil {
		t.Fatal(err)
	}
	return early{
		name: "late", function: "late:work", path: subject.Compile(t, "late", "-Wl,--dynamic-linker="+mute, "testdata/early/main.c", library, "-Wl,-rpath,"+filepath.Dir(library)),
		where: "before its own first instruction, after the constructors of its libraries, because the dynamic linker " + mute + " does not report when they are mapped",
	}
}

// runPaused starts a program paused, and returns the file with its output.
func (s *served) runPaused(t *testing.T, e early, more ...string) (app gateway.App, out string) {
	t.Helper()
	out = filepath.Join(s.dir, e.name+".out")
	args := append([]string{"-i"}, e.env...)
	args = append(args, "MIRADOR_GATEWAY=unix:"+s.socket, miradorPath, "run", "--paused", "--json", "--app", e.name, "--stdout", out)
	args = append(append(args, more...), "--", e.path)
	text, err := exec.Command("env", args...).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
	}
	if err := json.Unmarshal(text, &app); err != nil {
		t.Fatal(err)
	}
	return app, out
}

// app returns an application.
func (s *served) app(t *testing.T, name string) (app gateway.App) {
	t.Helper()
	if err := json.Unmarshal([]byte(wants(t, "--unix-socket", s.socket, "http://mirador/apps/"+name)), &app); err != nil {
		t.Fatal(err)
	}
	return app
}

// count adds a probe that counts the calls of a unit, and returns its id.
func (s *served) count(t *testing.T, app, unit string) string {
	t.Helper()
	added := s.must(t, "", "probe", "add", "--app", app, "--region", unit, "--metric", "COUNT")
	id, _, _ := strings.Cut(added, " ")
	return strings.TrimSpace(id)
}

// reports waits until a program has reported its calls.
func reports(t *testing.T, out string) (own, library int) {
	t.Helper()
	eventually(t, "the program reports its calls in "+out, func() bool {
		text, err := os.ReadFile(out)
		return err == nil && bytes.HasSuffix(text, []byte("\n"))
	})
	text, err := os.ReadFile(out)
	if err == nil {
		_, err = fmt.Sscan(string(text), &own, &library)
	}
	if err != nil {
		t.Fatal(err)
	}
	return own, library
}

// counts returns the count of a probe.
func (s *served) counts(t *testing.T, id string) int {
	t.Helper()
	fields := strings.Fields(s.must(t, "", "probe", "value", id))
	n, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		t.Fatalf("the value of %s is %q", id, fields)
	}
	return n
}

// TestPaused sets probes in programs that were started paused, in all placements, and compares
// them with the programs' own counts from the first call on. How a program is paused does not depend
// on the placement, so only the first one has all programs.
func TestPaused(t *testing.T) {
	t.Parallel()
	programs := compileEarly(t)
	for i, placements := range []string{"inline,kernel,trap", "kernel,trap", "trap"} {
		t.Run(placements, func(t *testing.T) {
			s := startServe(t, os.Geteuid(), "--placements", placements)
			list := programs
			if i > 0 {
				list = programs[:4]
			}
			for _, e := range list {
				t.Run(e.name, func(t *testing.T) { pausedCounts(t, s, e) })
			}
		})
	}
}

func pausedCounts(t *testing.T, s *served, e early) {
	app, out := s.runPaused(t, e)
	if app.State != probes.Paused || app.Processes[0].Paused != e.where {
		t.Errorf("the program is %s, %s; want %s", app.State, app.Processes[0].Paused, e.where)
	}
	own, library := s.count(t, e.name, e.function), ""
	if e.library != "" {
		library = s.count(t, e.name, e.library)
	}
	if text, _ := os.ReadFile(out); len(text) > 0 {
		t.Errorf("the paused program has written %q", text)
	}
	if !strings.Contains(s.mir(t, e.name, `<snapshotreq stack="2"/>`), "<stack>") {
		t.Error("a snapshot shows no stack")
	}
	s.must(t, "", "continue", e.name)
	calls, libraryCalls := reports(t, out)
	if got := s.counts(t, own); got != calls {
		t.Errorf("%d calls are counted as %d", calls, got)
	}
	if library != "" {
		if got := s.counts(t, library); got < 1000 || libraryCalls > 0 && got != libraryCalls {
			t.Errorf("%d calls in the library are counted as %d", libraryCalls, got)
		}
	}
	if state := s.app(t, e.name).State; state == probes.Paused {
		t.Error("the program continues and is paused")
	}
	s.must(t, "", "release", e.name)
}

// TestPausedKilled kills the gateway while a program is paused. The program continues, and the
// next gateway has all its calls.
func TestPausedKilled(t *testing.T) {
	t.Parallel()
	pie := compilePIE(t)
	for _, placements := range []string{"inline,kernel,trap", "kernel,trap"} {
		t.Run(placements, func(t *testing.T) { pausedKilled(t, pie, placements) })
	}
	t.Run("static", func(t *testing.T) { pausedKilled(t, compileAlone(t, "static", "-static"), "inline,kernel,trap") })
}

func pausedKilled(t *testing.T, e early, placements string) {
	s := startServe(t, os.Geteuid(), "--placements", placements)
	fifo := filepath.Join(s.dir, "in")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, out := s.runPaused(t, e, "--stdin", fifo)
	id := s.count(t, e.name, e.function)
	s.kill(t)
	calls, _ := reports(t, out)
	s.await(t, s.begin(t))
	if state := s.app(t, e.name).State; state != probes.Running {
		t.Errorf("after the gateway was killed the program is %s", state)
	}
	if got := s.counts(t, id); got != calls {
		t.Errorf("%d calls are counted as %d", calls, got)
	}
	if _, errs, status := s.mirador(t, "", "continue", e.name); status != 1 || !strings.Contains(errs, "no process of application "+e.name+" is paused") {
		t.Errorf("status %d, %s", status, errs)
	}
	in.Close()
	eventually(t, "the program ends", func() bool { return len(executing(t, e.path)) == 0 })

}

// TestPausedKilledAnywhere kills the gateway at any instant while it starts a program paused.
// The program, if it exists, does what it does without a gateway.
func TestPausedKilledAnywhere(t *testing.T) {
	e := compilePIE(t)
	want, err := exec.Command(e.path).Output()
	if err != nil {
		t.Fatal(err)
	}
	s := startServe(t, os.Geteuid())
	out := filepath.Join(s.dir, "out")
	existed := 0
	for range kills(t) {
		os.Remove(out)
		run := exec.Command(miradorPath, "run", "--paused", "--stdout", out, "--", e.path)
		run.Env = append(os.Environ(), "MIRADOR_GATEWAY=unix:"+s.socket)
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		s.cmd.Process.Signal(syscall.SIGSTOP)
		pids := executing(t, e.path)
		s.kill(t)
		run.Wait() // fails, since the gateway is gone
		for _, pid := range pids {
			existed++
			eventually(t, "the program ends", func() bool { return len(executing(t, e.path)) == 0 })
			if got, _ := os.ReadFile(out); !bytes.Equal(got, want) {
				t.Errorf("process %d has written %q, want %q", pid, got, want)
			}
		}
		s.await(t, s.begin(t))
	}
	t.Logf("%d programs existed when the gateway was killed", existed)
}

// executing lists the processes that execute a program.
func executing(t *testing.T, path string) (pids []int) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if to, _ := os.Readlink(link); to == path {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			if id, err := proc.Identify(pid); err == nil && proc.Alive(id) == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// TestPausedEnds ends the pause of programs in all ways but "mirador continue".
func TestPausedEnds(t *testing.T) {
	t.Parallel()
	e := compilePIE(t)
	s := startServe(t, os.Geteuid())
	start := func(t *testing.T, more ...string) (pid int, out string) {
		t.Helper()
		app, out := s.runPaused(t, e, more...)
		return app.Processes[0].PID, out
	}
	t.Run("release", func(t *testing.T) {
		_, out := start(t)
		s.must(t, "", "attach", "--app", "second", strconv.Itoa(s.app(t, e.name).Processes[0].PID))
		s.must(t, "", "release", e.name) // the second application keeps the process
		reports(t, out)
		s.must(t, "", "release", "second")
	})
	t.Run("kill", func(t *testing.T) {
		_, out := start(t)
		s.must(t, "", "release", "--kill", e.name)
		eventually(t, "the program ends", func() bool { return len(executing(t, e.path)) == 0 })
		if text, _ := os.ReadFile(out); len(text) > 0 {
			t.Errorf("a killed program has written %q", text)
		}
	})
	t.Run("SIGKILL", func(t *testing.T) {
		pid, _ := start(t)
		syscall.Kill(pid, syscall.SIGKILL)
		eventually(t, "the end is known", func() bool { return s.app(t, e.name).State == probes.Terminated })
		if _, errs, status := s.mirador(t, "", "continue", e.name); status != 1 || !strings.Contains(errs, "is paused") {
			t.Errorf("status %d, %s", status, errs)
		}
		s.must(t, "", "release", e.name)
	})
	t.Run("lease", func(t *testing.T) {
		_, out := start(t, "--lease", "1s")
		reports(t, out)
		if !strings.Contains(s.logged(), "continued programs that were started paused") {
			t.Error("the log does not say so")
		}
		s.must(t, "", "release", e.name)
	})
	t.Run("another tool", func(t *testing.T) {
		pid, out := start(t)
		s.must(t, "", "omis", "--tool", "debugger", fmt.Sprintf(`: proc_attach3([],%d,"")`, pid))
		s.must(t, "", "omis", "--tool", "debugger", ": thread_continue([])")
		reports(t, out)
		eventually(t, "it is not paused", func() bool { return s.app(t, e.name).State != probes.Paused })
		s.must(t, "", "release", e.name)
	})
	t.Run("SIGTERM", func(t *testing.T) {
		_, out := start(t)
		s.end(t)
		reports(t, out)
	})
}

// TestPausedHint checks what is printed for a paused program.
func TestPausedHint(t *testing.T) {
	s := startServe(t, os.Geteuid())
	out, errs, status := s.mirador(t, "", "run", "--paused", "--", "/bin/true")
	if status != 0 || out != "true p_1\n" || !strings.Contains(errs, "is paused before its first constructor; set probes, then: mirador continue true") {
		t.Errorf("status %d, %q, %q", status, out, errs)
	}
	if apps := s.must(t, "", "apps"); !strings.Contains(apps, " paused ") {
		t.Errorf("the applications are %s", apps)
	}
	s.must(t, "", "release", "true")
}

// TestPausedWithoutLibraries starts a program whose library does not exist.
func TestPausedWithoutLibraries(t *testing.T) {
	s := startServe(t, os.Geteuid())
	library := compileLibrary(t)
	e := library.early(t, "pie", earlyMain)
	if err := os.Remove(string(library)); err != nil {
		t.Fatal(err)
	}
	_, errs, status := s.mirador(t, "", "run", "--paused", "--stderr", s.dir+"/errors", "--", e.path)
	if status != 1 || !strings.Contains(errs, "the program ended before it had loaded its libraries") {
		t.Errorf("status %d, %s", status, errs)
	}
	if text, _ := os.ReadFile(s.dir + "/errors"); !strings.Contains(string(text), "libearly.so") {
		t.Errorf("its standard error is %q", text)
	}
}
