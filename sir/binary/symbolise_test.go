package binary

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"mirador/examples/targets"
)

// loadedModules lists the files that a process has mapped executable, as a backend does.
func loadedModules(t *testing.T, pid int) []Module {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]uint64{}
	var modules []Module
	for line := range strings.Lines(string(b)) {
		m, ok := parseMapping(strings.TrimSpace(line))
		if !ok || m.path[0] != '/' && m.path != vdso {
			continue
		}
		if _, seen := first[m.path]; !seen {
			first[m.path] = m.low
		}
		if strings.Contains(line, "r-xp") {
			modules = append(modules, Module{Path: m.path, Bias: first[m.path], Start: m.low, Len: m.high - m.low})
		}
	}
	return modules
}

func TestResolveInALiveProcess(t *testing.T) {
	p := targets.Start(t, "mmul", "--wait", "1", "8", "1")
	cache := NewCache(DefaultCacheBytes, nil)
	modules := loadedModules(t, p.PID)
	symbols := cache.Symbols(context.Background(), modules, FromProcess(p.PID))
	image := func(path string) (*Image, uint64) {
		for _, m := range modules {
			if filepath.Base(m.Path) == path {
				im, err := cache.Open(m.Path, FromProcess(p.PID))
				if err != nil {
					t.Fatal(err)
				}
				return im, m.Bias
			}
		}
		t.Fatalf("%s is not loaded: %+v", path, modules)
		return nil, 0
	}
	for _, c := range []struct{ module, symbol, want string }{
		{"mmul", "dot", `^dot\+0x4 \(work\.c:\d+\)$`},
		{"mmul", "_ZN4mmul5riskyEi", `^mmul::risky\(int\)\+0x4 \(\w+\.(cc|h):\d+\)$`},
		{"libmmul.so", "transpose", `^transpose\+0x4 \(mmul\.c:\d+\)$`},
		{"libc.so.6", "malloc", `^malloc\+0x4 \(libc\.so\.6\)$`},
		{vdso, "__vdso_getcpu", `^(__vdso_)?getcpu\+0x4 \(\[vdso\]\)$`},
	} {
		im, bias := image(c.module)
		var entry uint64
		for _, f := range im.funcs {
			if f.name == c.symbol || c.module == vdso && f.name == strings.TrimPrefix(c.symbol, "__vdso_") {
				entry = f.addr
			}
		}
		if got := symbols.Resolve(bias + entry + 4).String(); entry == 0 || !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%s in %s: %s, want %s", c.symbol, c.module, got, c.want)
		}
	}
}

func TestFrameStrings(t *testing.T) {
	im := open(t, named(t, "O2"))
	u := unit(t, im, "never_returns")
	const bias = 0x10000
	cache := NewCache(DefaultCacheBytes, nil)
	symbols := cache.Symbols(context.Background(), []Module{{Path: im.Path(), Bias: bias}}, FromDisk)

	// A call that does not return may be the last instruction of a function: the return
	// address then belongs to another function.
	end := bias + u.Entry + u.Size
	if f := symbols.Stack([]uint64{bias + u.Entry, end})[1]; f.Function != "never_returns" || f.Offset != u.Size {
		t.Errorf("return address at the end: %+v", f)
	}
	if f := symbols.Resolve(end); f.Function == "never_returns" {
		t.Errorf("address behind the end: %+v", f)
	}
	if got := symbols.Resolve(bias + 1).String(); got != "0x1 (O2)" {
		t.Errorf("no function: %s", got)
	}
	if got := symbols.Resolve(0x7fff00000000).String(); got != "0x7fff00000000" {
		t.Errorf("no module: %s", got)
	}
	missing := cache.Symbols(context.Background(), []Module{{Path: "/no/such.so", Start: 0x1000, Len: 0x1000, Bias: 0x800}}, FromDisk)
	if got := missing.Resolve(0x1810).String(); got != "0x1010 (such.so)" {
		t.Errorf("unreadable module: %s", got)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestReplacedFilesOfALiveProcess checks that a program and its library are read as the
// process runs them after their files were replaced.
func TestReplacedFilesOfALiveProcess(t *testing.T) {
	p := targets.StartAs(t, os.Getuid(), "mmul", "--wait", "1", "8", "1")
	library := filepath.Join(filepath.Dir(p.Path), "libmmul.so")
	want := map[string]string{p.Path: open(t, p.Path).BuildID(), library: open(t, library).BuildID()}
	for path := range want {
		copyFile(t, named(t, "O0"), path+".new")
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	cache := NewCache(DefaultCacheBytes, nil)
	for path, id := range want {
		for _, name := range []string{path, path + " (deleted)"} {
			im, err := cache.Open(name, FromProcess(p.PID))
			if err != nil {
				t.Error(err)
			} else if im.BuildID() != id || strings.Contains(program(im).Regions[0].ID, "deleted") {
				t.Errorf("%s: build id %s, want %s; first id %s", name, im.BuildID(), id, program(im).Regions[0].ID)
			}
		}
	}
	if _, err := FromProcess(p.PID)("/no/such/file"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestCacheReadsAFileOnce(t *testing.T) {
	cache := NewCache(DefaultCacheBytes, nil)
	path := named(t, "static")
	images := make([]*Image, 8)
	var all sync.WaitGroup
	for i := range images {
		all.Go(func() { images[i], _ = cache.Open(path, FromDisk) })
	}
	all.Wait()
	for _, im := range images {
		if im == nil || im != images[0] {
			t.Fatalf("images %v", images)
		}
	}
	again := filepath.Join(t.TempDir(), "static")
	copyFile(t, path, again)
	first, err := cache.Open(again, FromDisk)
	if err != nil {
		t.Fatal(err)
	}
	copyFile(t, named(t, "O2"), again)
	if second, err := cache.Open(again, FromDisk); err != nil || second == first {
		t.Errorf("a changed file gives the old image (%v)", err)
	}
}

func TestCacheIsBounded(t *testing.T) {
	one := open(t, named(t, "static"))
	cache := NewCache(one.memory+one.memory/2, nil)
	for _, name := range []string{"static", "O2", "static", "O0", "static"} {
		if _, err := cache.Open(named(t, name), FromDisk); err != nil {
			t.Fatal(err)
		}
		if cache.used > cache.limit {
			t.Errorf("%d bytes used of %d", cache.used, cache.limit)
		}
	}
	if _, err := cache.Open("testdata/shapes.c", FromDisk); err == nil {
		t.Error("a C source was opened as a program")
	}
	if len(cache.images) != cache.recent.Len() || cache.used < one.memory/100 {
		t.Errorf("%d images, %d in the list, %d bytes", len(cache.images), cache.recent.Len(), cache.used)
	}
}
