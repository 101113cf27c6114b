package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mirador/sir"
)

// TestSourcesOfSirreq checks that a sirreq may name source files of several languages and a header, and
// that their ids are those of the running program.
func TestSourcesOfSirreq(t *testing.T) {
	t.Parallel()
	s := startServe(t, os.Geteuid())
	c := startTally(t)
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return `<resource in="file://` + path + `"/>`
	}
	tally, err := filepath.Abs("testdata/tally.c")
	if err != nil {
		t.Fatal(err)
	}
	header := write("prototypes.h", "#define each_row(r) for (int r = 0; r < 3; r++)\n")
	more := write("more.c", "#include \"prototypes.h\"\nint more(void) {\n\teach_row(i) { step(i); }\n}\n")
	solver := write("solver.f90", "subroutine solve(n)\ndo i = 1, n\ncall step(i)\nend do\nend subroutine\n")
	broken := write("broken.c", "int f(void) { if ( }\nint g(void) { while (1) h(); }\n")
	reply := s.mir(t, "tally", `<sirreq><resource in="file://`+tally+`"/>`+header+more+solver+broken+`</sirreq>`)
	for _, part := range []string{
		`<program path="tally">`, `id="tally:work"`, `id="tally:more/loop1" type="loop" form="macro"`, `id="tally:more/loop1/call.step"`,
		`id="tally:solve_/loop1/call.step_"`, `language="fortran"`, `<gap startLine="1"`, `id="tally:g/loop1/call.h"`,
	} {
		if !strings.Contains(reply, part) {
			t.Errorf("%s is missing in %s", part, reply)
		}
	}
	running, err := sir.Decode(strings.NewReader(s.mir(t, "tally", `<sirreq><resource in="process:p_1"/></sirreq>`)))
	if err != nil {
		t.Fatal(err)
	}
	sources, err := sir.Decode(strings.NewReader(s.mir(t, "tally", `<sirreq><resource in="file://`+tally+`"/></sirreq>`)))
	if err != nil || len(sources.Programs) != 1 || len(sources.Programs[0].Regions) == 0 {
		t.Fatalf("%+v, %v", sources, err)
	}
	inCode, inSource := sir.NewIndex(&running.Programs[0]), sir.NewIndex(&sources.Programs[0])
	for _, id := range []string{"tally:work", "tally:main"} { // others are inlined
		if inCode.ByID(id) == nil || inSource.ByID(id) == nil {
			t.Errorf("%s is %v in the code, %v in the source", id, inCode.ByID(id), inSource.ByID(id))
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe.c"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := write("large.c", strings.Repeat("{", 17<<20))
	refused, _, status := s.mirador(t, `<sirreq><resource in="file://`+dir+`/none.c"/><resource in="file://`+dir+`/pipe.c"/></sirreq>`, "post", "--app", "tally", "-")
	for _, part := range []string{"none.c: there is no such file", "pipe.c is not a regular file"} {
		if status == 0 || !strings.Contains(refused, part) {
			t.Errorf("%s is missing in %s, status %d", part, refused, status)
		}
	}
	if refused, _, status = s.mirador(t, `<sirreq>`+large+`</sirreq>`, "post", "--app", "tally", "-"); status == 0 || !strings.Contains(refused, "it has more than 16 MB") {
		t.Errorf("17 MB of braces: %s, status %d", refused, status)
	}
}
