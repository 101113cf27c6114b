package apart

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"mirador/sir/source"
)

// asProcess makes this test program the process that reads sources, or one that fails.
const asProcess = "MIRADOR_TEST_SOURCES"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == asProcess {
		switch os.Args[2] {
		case "crash":
			panic("the parser is lost")
		case "garbage":
			os.Stdout.WriteString("no answer\n")
		case "memory":
			if err := confine(); err != nil {
				panic(err)
			}
			var kept [][]byte
			for {
				kept = append(kept, make([]byte, 64<<20))
				clear(kept[len(kept)-1])
			}
		default:
			if err := Serve(os.Stdin, os.Stdout); err != nil {
				os.Exit(1)
			}
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func reader(mode string) *Reader { return NewReader([]string{"/proc/self/exe", asProcess, mode}) }

func TestRead(t *testing.T) {
	resources := []source.Resource{{In: "file:///a.c", Path: "/a.c", Text: []byte("int f(void) { for (;;) g(); }\n")}, {In: "b.f90", Path: "b.f90", Text: []byte("subroutine s\nend\n")}}
	p, err := reader("serve").Read(t.Context(), "prog", resources)
	if err != nil || len(p.Regions) != 2 || p.Regions[0].ID != "prog:f" || p.Regions[0].Regions[0].ID != "prog:f/loop1" || len(p.Resources) != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	var refused *source.Error
	_, err = reader("serve").Read(t.Context(), "prog", []source.Resource{{In: "x", Path: "a.unknown"}})
	if !errors.As(err, &refused) || refused.In != "x" {
		t.Errorf("an unknown language: %v", err)
	}
}

// TestProcessFails checks that whatever happens to the process, its parent gets an error.
func TestProcessFails(t *testing.T) {
	resources := []source.Resource{{In: "a.c", Path: "a.c", Text: []byte("int x;")}}
	for mode, want := range map[string]string{"crash": "the parser is lost", "garbage": "no answer", "memory": "reading it needs more than"} {
		if _, err := reader(mode).Read(t.Context(), "prog", resources); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", mode, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := reader("serve").Read(ended, "prog", resources); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that ended: %v", err)
	}
}
