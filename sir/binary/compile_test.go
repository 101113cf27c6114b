package binary

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mirador/sir"
)

// variant is a way to compile the test programs.
type variant struct {
	name    string
	sources []string
	flags   []string
	strip   bool
}

var (
	c   = []string{"shapes.c"}
	cxx = []string{"classes.cc", "twin_a.cc", "twin_b.cc"}
)

var variants = []variant{
	{"O0", c, []string{"-O0", "-g"}, false},
	{"O2", c, []string{"-O2", "-g"}, false},
	{"O2-cet", c, []string{"-O2", "-g", "-fcf-protection"}, false},
	{"O3-native", c, []string{"-O3", "-g", "-march=native"}, false},
	{"O2-nopie", c, []string{"-O2", "-g", "-no-pie", "-fno-pie"}, false},
	{"O0-nopie", c, []string{"-O0", "-no-pie", "-fno-pie"}, false},
	{"O2-dwarf4", c, []string{"-O2", "-g", "-gdwarf-4"}, false},
	{"O2-compressed", c, []string{"-O2", "-g", "-gz=zlib"}, false},
	{"static", c, []string{"-O2", "-g", "-static"}, false},
	{"stripped", c, []string{"-O2", "-rdynamic"}, true},
	{"cxx-O0", cxx, []string{"-O0", "-g"}, false},
	{"cxx-O2", cxx, []string{"-O2", "-g"}, false},
	{"cxx-lto", cxx, []string{"-O2", "-g", "-flto"}, false},
	{"cxx-stripped", cxx, []string{"-O2", "-rdynamic"}, true},
}

// compiler builds each variant once, in a directory that TestMain removes.
type compiler struct {
	mu   sync.Mutex
	dir  string
	done map[string]string
}

var programs = &compiler{done: map[string]string{}}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "mirador-binary")
	if err != nil {
		panic(err)
	}
	programs.dir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func (c *compiler) make(t testing.TB, v variant) string {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if path := c.done[v.name]; path != "" {
		return path
	}
	compiler := "gcc"
	if strings.HasSuffix(v.sources[0], ".cc") {
		compiler = "g++"
	}
	path := filepath.Join(c.dir, v.name)
	args := append([]string{"-o", path}, v.flags...)
	for _, s := range v.sources {
		args = append(args, filepath.Join("testdata", s))
	}
	run(t, compiler, args...)
	if v.strip {
		run(t, "strip", path)
	}
	c.done[v.name] = path
	return path
}

func named(t testing.TB, name string) string {
	t.Helper()
	for _, v := range variants {
		if v.name == name {
			return programs.make(t, v)
		}
	}
	t.Fatalf("no variant %s", name)
	return ""
}

func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	return string(out)
}

// program returns the structure of an image.
func program(im *Image) sir.Program {
	p, _ := im.Program(context.Background()) // such a context never ends
	return p
}

func open(t testing.TB, path string) *Image {
	t.Helper()
	im, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return im
}

func unit(t testing.TB, im *Image, symbol string) sir.Region {
	t.Helper()
	for _, u := range program(im).Regions {
		if u.Symbol == symbol {
			return u
		}
	}
	t.Fatalf("%s has no function %s", im.Path(), symbol)
	return sir.Region{}
}

// eachVariant runs a test on every program.
func eachVariant(t *testing.T, test func(t *testing.T, v variant, im *Image)) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) { test(t, v, open(t, programs.make(t, v))) })
	}
}
