package cli

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

// What a process has loaded is looked up once, and again when it maps other files, or when
// a file is written anew in its place.
func TestInventory(t *testing.T) {
	program := filepath.Join(t.TempDir(), "many")
	text, err := os.ReadFile(subject.Compile(t, "many", "../bench/reference/many.c"))
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
	p := newPrograms(node)
	look := func() *translate.Module {
		t.Helper()
		modules, err := p.Modules(t.Context(), target.PID)
		if err != nil {
			t.Fatal(err)
		}
		return &modules[0]
	}
	first := look()
	if u := first.Index().ByID("many:f_9999"); u == nil || u.Entry == 0 {
		t.Errorf("f_9999 is %v", u)
	}
	if look() != first {
		t.Error("looked up twice")
	}
	process, err := proc.Identify(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	files, err := mappedFiles(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	if p.known.find(process, files) == nil || p.known.find(process, files+"one more\n") != nil {
		t.Error("what is known is not that of the files that are mapped")
	}
	if err := os.Chtimes(program, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if look() == first {
		t.Error("not looked up again, though the file has changed")
	}
}

// A map that cannot be read says why: not every process of which we have none has ended.
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
