package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// showing matches a test as doc/mir-conformance.md names it: the folder of its package
	// and its function.
	showing   = regexp.MustCompile(`^([\w/]+) (Test\w+)$`)
	caseNamed = regexp.MustCompile(`^cases/([\w-]+)$`)
	quoted    = regexp.MustCompile("`([^`]+)`")
)

// TestConformancePage checks that each sentence in doc/mir-conformance.md names what shows it,
// and that all the tests and cases it names exist.
func TestConformancePage(t *testing.T) {
	text, err := os.ReadFile("doc/mir-conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for n, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 3 || strings.HasPrefix(cells[0], "---") || cells[2] == "shown by" {
			continue
		}
		rows++
		named := quoted.FindAllStringSubmatch(cells[2], -1)
		if len(named) == 0 {
			t.Errorf("doc/mir-conformance.md:%d: no test shows %q", n+1, cells[0])
		}
		for _, name := range named {
			if !shown(t, name[1]) {
				t.Errorf("doc/mir-conformance.md:%d: there is no test %s", n+1, name[1])
			}
		}
	}
	if rows < 70 {
		t.Errorf("doc/mir-conformance.md has %d sentences; the report has more", rows)
	}
}

// shown reports whether a test or a case exists.
func shown(t *testing.T, name string) bool {
	if m := caseNamed.FindStringSubmatch(name); m != nil {
		_, err := os.Stat("examples/cases/" + m[1] + ".txtar")
		return err == nil
	}
	m := showing.FindStringSubmatch(name)
	if m == nil {
		return false
	}
	files, err := filepath.Glob(m[1] + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "func "+m[2]+"(") {
			return true
		}
	}
	return false
}
