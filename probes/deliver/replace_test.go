package deliver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mirador/probes/deliver"
)

// TestReplace checks that files are written as a whole or not at all, and only where they may be.
func TestReplace(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return "file://" + filepath.Join(dir, name) }
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := deliver.OpenQueues(deliver.Rules{in("")}, nil, nil)
	defer all.Close(t.Context())
	own := deliver.User{UID: os.Geteuid()}
	for uri, why := range map[string]string{
		in("folder"): "no regular file", in("link/b"): "symbolic link", in("none/b"): "no such file", "file:///elsewhere/b": "its configuration allows",
		in("b") + "?keep=3": "is no file", "http://host/b": "is no file", in("x") + "/../b": "names no file",
	} {
		list := []deliver.Replacement{{URI: in("a"), Text: []byte("new")}, {URI: uri}}
		if err := all.Replace(own, list); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", uri, err, why)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(text) != "old" {
		t.Errorf("a file of a refused request has %q, %v", text, err)
	}
	if err := all.Replace(deliver.User{UID: -1}, []deliver.Replacement{{URI: in("a")}}); err == nil || !strings.Contains(err.Error(), "which user's rights") {
		t.Errorf("an unknown user: %v", err)
	}
	if err := all.Replace(own, []deliver.Replacement{{in("a"), []byte("new"), 0o640}, {in("b"), []byte("more"), 0o600}}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
	info, err := os.Stat(filepath.Join(dir, "a"))
	if text, _ := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(text) != "new" || info.Mode().Perm() != 0o640 {
		t.Errorf("the file has %q and the mode %v, %v", text, info.Mode(), err)
	}
}
