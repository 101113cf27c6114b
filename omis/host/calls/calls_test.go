//go:build linux

package calls

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mirador/omis"
	"mirador/omis/host/prototype"
)

func TestTable(t *testing.T) {
	if _, err := parse(text); err != nil {
		t.Fatal(err)
	}
	for name, c := range parsed().byName {
		if found, ok := ByName(name); !ok || found != c || ByNumber(uint64(c.Number)) != c || len(c.Params) > 6 {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if n := len(parsed().byName); n < 385 {
		t.Errorf("%d calls", n)
	}
}

func TestBadTables(t *testing.T) {
	for _, text := range []string{"x int f(void);", "1 int f(", "1 int f(void);\n1 int g(void);", "1 int f(void);\n2 int f(void);"} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestNumbersAreTheKernels compares the numbers with tables that others generated from
// the kernel.
func TestNumbersAreTheKernels(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for path, pattern := range map[string]string{
		filepath.Join(strings.TrimSpace(string(dir)), "unix/zsysnum_linux_amd64.go"): `SYS_(\w+)\s*= (\d+)`,
		"/usr/include/x86_64-linux-gnu/asm/unistd_64.h":                              `__NR_(\w+) (\d+)`,
	} {
		list, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(list), -1) {
			name := strings.ToLower(m[1])
			c, ok := ByName(name)
			if !ok || strconv.Itoa(c.Number) != m[2] {
				t.Errorf("%s: %s is %s, here %+v", path, name, m[2], c)
			}
			checked++
		}
	}
	if checked < 385+350 {
		t.Errorf("only %d numbers were compared", checked)
	}
}

func TestUnknownNumber(t *testing.T) {
	c := ByNumber(9999)
	if c.Name != "syscall_9999" || len(c.Started(Args{1, 2, 3, 4, 5, 6}, nil)) != 6 {
		t.Errorf("%+v", c)
	}
	if _, ok := ByName("no_such_call"); ok {
		t.Error("a call that does not exist is found")
	}
}

// memory returns the memory of a process that consists of a few bytes.
func memory(at uint64, content string) prototype.Memory {
	return func(buf []byte, addr uint64) (int, error) {
		if addr < at || addr >= at+uint64(len(content)) {
			return 0, os.ErrInvalid
		}
		n := copy(buf, content[addr-at:])
		if n < len(buf) {
			return n, os.ErrInvalid
		}
		return n, nil
	}
}

func TestEnded(t *testing.T) {
	read, _ := ByName("read")
	mem := memory(0x1000, "abcdef")
	negative := func(n int64) uint64 { return uint64(n) }
	for _, c := range []struct {
		rax  uint64
		want []omis.Value
	}{
		{4, []omis.Value{omis.Int(4), omis.Int(0), omis.Int(3), omis.Binary([]byte("abcd")), omis.Int(100)}},
		{0, []omis.Value{omis.Int(0), omis.Int(0), omis.Int(3), omis.Binary(nil), omis.Int(100)}},
		{negative(-9), []omis.Value{omis.Int(-1), omis.Int(9), omis.Int(3), omis.Binary(nil), omis.Int(100)}},
		{negative(-512), []omis.Value{omis.Int(-1), omis.Int(512), omis.Int(3), omis.Binary(nil), omis.Int(100)}},
	} {
		got := read.Ended(Args{3, 0x1000, 100}, c.rax, mem)
		compareValues(t, got, c.want)
	}
	compareValues(t, read.Started(Args{3, 0x1000, 100}, mem), []omis.Value{omis.Int(3), omis.Int(0x1000), omis.Int(100)})
	mmap, _ := ByName("mmap")
	if v := mmap.Ended(Args{}, 0xffff_8000_0000_0000, nil); v[0].N != 0xffff_8000_0000_0000 {
		t.Errorf("mmap returns %+v", v[0])
	}
}

func compareValues(t *testing.T, got, want []omis.Value) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	for i := range got {
		if got[i].Kind != want[i].Kind || got[i].Str != want[i].Str || got[i].N != want[i].N || got[i].Neg != want[i].Neg {
			t.Errorf("par%d is %+v, want %+v", i+1, got[i], want[i])
		}
	}
}
