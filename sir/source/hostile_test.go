package source

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

// TestHostileSources reads texts that are large, deep or damaged. Reading ends, with what is not read.
func TestHostileSources(t *testing.T) {
	const n = 20_000
	for name, text := range map[string]string{
		"braces.c": "void f(void) " + strings.Repeat("{", n), "closed.c": "void f(void) " + strings.Repeat("{", n) + strings.Repeat("}", n),
		"calls.c": "int x = " + strings.Repeat("f(", n), "ifs.cc": "void f() {" + strings.Repeat("if (x) ", n) + ";}",
		"classes.java": strings.Repeat("class A {", n/4), "braces.go": "package a\nfunc f() " + strings.Repeat("{", n), "closures.go": "package a\nvar x = " + strings.Repeat("func() {", n/4),
		"loops.f90": strings.Repeat("do\n", n) + strings.Repeat("end do\n", n), "ifs.f": strings.Repeat("      IF (X) THEN\n", n/4) + "      END\n",
		"implied.f90": "print *, " + strings.Repeat("(", n) + strings.Repeat(", i = 1, 2)", n), "references.f90": "integer function f(x)\nx = " + strings.Repeat("f(", n) + strings.Repeat(")", n) + "\nend",
	} {
		p := read(t, "hostile", Resource{In: name, Path: name, Text: []byte(text)})
		c := newChecker(t, []Resource{{Path: name, Text: []byte(text)}})
		c.form = false
		c.program(&p)
		if len(p.Resources[0].Gaps) == 0 && name != "implied.f90" && name != "references.f90" {
			t.Errorf("%s has no gaps", name)
		}
	}
	var refused *Error
	_, err := Read(context.Background(), "hostile", []Resource{{In: "a.c", Path: "a.c", Text: bytes.Repeat([]byte("{"), 100<<20)}})
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "more than 16 MB") {
		t.Errorf("100 MB of braces: %v", err)
	}
	many, much := make([]Resource, MostFiles+1), make([]Resource, 5)
	for i := range many {
		many[i] = Resource{In: "a.c", Path: "a.c"}
	}
	for i := range much {
		much[i] = Resource{In: "a.c", Path: "a.c", Text: make([]byte, MostBytes)}
	}
	for why, resources := range map[string][]Resource{
		"at most 10000 sources": many, "more than 64 MB": much, "does not tell a language": {{In: "a.txt", Path: "a.txt"}},
	} {
		if _, err := Read(context.Background(), "hostile", resources); !errors.As(err, &refused) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := Read(ended, "hostile", []Resource{{In: "a.c", Path: "a.c", Text: bytes.Repeat([]byte("f(1);\n"), 1<<20)}}); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that ended: %v", err)
	}
}
