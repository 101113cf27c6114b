package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mirador/examples/targets"
)

// TestStartedByLink measures a program that was started through a symbolic link. Application and
// units have the name of the link, as in the structure of the link.
func TestStartedByLink(t *testing.T) {
	s := startServe(t, os.Geteuid())
	link := filepath.Join(s.dir, "multiply")
	if err := os.Symlink(targets.Build(t, "mmul"), link); err != nil {
		t.Fatal(err)
	}
	if got := s.must(t, "", "run", "--", link, "1", "8"); !strings.HasPrefix(got, "multiply p_1") {
		t.Errorf("run printed %q", got)
	}
	s.must(t, `<instrreq activated="true" flush="true"><codeRegion from="multiply:dot"/><metric name="COUNT"/></instrreq>`, "post", "-")
	structure, err := exec.Command(miradorPath, "sir", link).Output()
	if err != nil || !strings.Contains(string(structure), `id="multiply:dot"`) {
		t.Errorf("the structure of the link has no multiply:dot, %v", err)
	}
	s.must(t, "", "release", "--kill", "multiply")
}
