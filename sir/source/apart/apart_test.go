package apart

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

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
		case "begun":
			os.Stdout.WriteString(`{"Begins":true}` + "\n" + `{"Number":1,"Begins":true}` + "\n{}\n")
			panic("the parser is lost")
		case "hang":
			select {}
		case "spin":
			if err := confine(tight()); err != nil {
				panic(err)
			}
			for n := 1; n > 0; n |= 1 {
			}
		case "memory":
			if err := confine(tight()); err != nil {
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

// tight returns limits that are soon reached.
func tight() Limits {
	l := DefaultLimits()
	l.CPU, l.Memory = time.Second, 256<<20
	return l
}

func reader(mode string, limits Limits) *Reader {
	return NewReader([]string{"/proc/self/exe", asProcess, mode}, limits)
}

func TestRead(t *testing.T) {
	resources := []source.Resource{{In: "file:///a.c", Path: "/a.c", Text: []byte("int f(void) { for (;;) g(); }\n")}, {In: "b.f90", Path: "b.f90", Text: []byte("subroutine s\nend\n")}}
	p, err := reader("serve", DefaultLimits()).Read(t.Context(), "prog", resources)
	if err != nil || len(p.Regions) != 2 || p.Regions[0].ID != "prog:f" || p.Regions[0].Regions[0].ID != "prog:f/loop1" || len(p.Resources) != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	var refused *source.Error
	_, err = reader("serve", DefaultLimits()).Read(t.Context(), "prog", []source.Resource{{In: "x", Path: "a.unknown"}})
	if !errors.As(err, &refused) || refused.In != "x" {
		t.Errorf("an unknown language: %v", err)
	}
}

// TestProcessFails checks that whatever happens to the process, its parent gets an error.
func TestProcessFails(t *testing.T) {
	resources := []source.Resource{{In: "a.c", Path: "a.c", Text: []byte("int x;")}, {In: "b.c", Path: "b.c"}}
	short, small := DefaultLimits(), DefaultLimits()
	short.Time, small.Answer = time.Millisecond, 100
	for _, c := range []struct {
		mode   string
		limits Limits
		want   string
	}{
		{"crash", DefaultLimits(), "of a.c: reading it needs more than 1536 MB of memory, the limit of this gateway (serve --parser-bytes), or the parser failed (exit status 2: panic: the parser is lost)"},
		{"begun", DefaultLimits(), "of b.c: reading it needs more than"},
		{"garbage", DefaultLimits(), "no answer"},
		{"memory", tight(), "of a.c: reading it needs more than 256 MB of memory"},
		{"hang", short, "of a.c: reading it took more than 1ms, because the machine is busy"},
		{"spin", tight(), "of a.c: reading it takes more than 1s of CPU time, the limit of this gateway (serve --parser-time)"},
		{"serve", small, ".c: the document of its structure has more than 0 MB"},
	} {
		if _, err := reader(c.mode, c.limits).Read(t.Context(), "prog", resources); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.mode, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := reader("serve", DefaultLimits()).Read(ended, "prog", resources); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that ended: %v", err)
	}
}
