package native

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/mir/translate"
	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/linux"
	"mirador/omis/linux/subject"
)

// TestModuleCache checks that a process's files are read once, and again after the process maps other
// files or a file is replaced.
func TestModuleCache(t *testing.T) {
	program := filepath.Join(t.TempDir(), "many")
	text, err := os.ReadFile(subject.Compile(t, "many", "../../bench/reference/many.c"))
	if err == nil {
		err = os.WriteFile(program, text, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	target := subject.Start(t, exec.Command(program))
	target.Line()
	node, err := linux.Open(linux.Config{Name: "here", Warden: []string{"/bin/true"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := node.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	p := New(node, nil)
	look := func() *translate.Module {
		t.Helper()
		modules, err := p.Modules(t.Context(), target.PID, "")
		if err != nil {
			t.Fatal(err)
		}
		return &modules[0]
	}
	first := look()
	if u := first.Units.ByID("many:f_9999"); u == nil || u.Entry == 0 {
		t.Errorf("f_9999 is %v", u)
	}
	if look() != first {
		t.Error("the files were read twice")
	}
	for name, want := range map[string]int{"many": 1, "other": 0} {
		if modules, err := p.Modules(t.Context(), target.PID, name); err != nil || len(modules) != want {
			t.Errorf("with the name %s there are %d modules, %v; want %d", name, len(modules), err, want)
		}
	}
	process, err := proc.Identify(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	files, err := mappedFiles(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	if p.known.find(moduleKey{process: process}, files) == nil || p.known.find(moduleKey{process: process}, files+"one more\n") != nil {
		t.Error("the cache returned modules of other files")
	}
	if err := os.Chtimes(program, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if look() == first {
		t.Error("the file has changed and was not read again")
	}
	target.Kill()
	p.known.enter(moduleKey{process: omis.ProcID{PID: os.Getppid()}}, &loadedModules{})
	if _, kept := p.known.loaded[moduleKey{process: process}]; kept {
		t.Error("the modules of an ended process are kept")
	}
}

// TestUnreadableMap checks that the error for an unreadable map gives the reason, and claims that
// the process has ended only if this is so.
func TestUnreadableMap(t *testing.T) {
	for cause, want := range map[error]omis.Status{
		unix.ENOENT: omis.UnknownObject, unix.ESRCH: omis.UnknownObject, fs.ErrPermission: omis.NoPermission, unix.EMFILE: omis.OSError,
	} {
		var got *omis.Error
		if err := unmapped(7, fmt.Errorf("open /proc/7/maps: %w", cause)); !errors.As(err, &got) || got.Status != want {
			t.Errorf("%v: %v", cause, err)
		}
	}
}
