package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// TestListIsTheDocuments checks that doc/survival.md names every item and its tests, and
// that the tests exist.
func TestListIsTheDocuments(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root, "doc/survival.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range items() {
		tests := "`" + strings.Join(it.tests, "`, `") + "`"
		if row := "| " + it.name + " | " + tests + " |"; !strings.Contains(string(doc), row) {
			t.Errorf("doc/survival.md has no row %s", row)
		}
		source := sources(t, it.pkg)
		for _, test := range it.tests {
			name, _, _ := strings.Cut(test, "/")
			if !strings.Contains(source, "\nfunc "+name+"(t *testing.T)") {
				t.Errorf("%s has no test %s", it.pkg, name)
			}
		}
	}
}

// sources returns the source text of a package's tests.
func sources(t *testing.T, pkg string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %d files", pkg, err, len(files))
	}
	var all strings.Builder
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

func TestPattern(t *testing.T) {
	if got := pattern("TestLives/exec"); got != "^TestLives$/^exec$" {
		t.Error(got)
	}
}
