//go:build linux && amd64

package library

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"mirador/examples/targets"
	"mirador/omis/host/proc"
	"mirador/omis/host/prototype"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func find(t testing.TB, c *Catalog, d *tracer, name string) *Function {
	t.Helper()
	found, err := c.Find(d.id, name)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %d functions, %v", name, len(found), err)
	}
	return found[0]
}

// hexadecimal returns numbers as bytes in memory, each in its size.
func hexadecimal(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	for f := range strings.FieldsSeq(text) {
		n, size, _ := strings.Cut(f, ":")
		bits, err := strconv.ParseUint(n, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		bytes, _ := strconv.Atoi(size)
		for i := range bytes {
			fmt.Fprintf(&b, "%02x", byte(bits>>(8*i)))
		}
	}
	return "#" + b.String()
}

func TestCallsOfAllShapes(t *testing.T) {
	const one, two, three, four, seven, five = "0x3ff0000000000000:8", "0x4000000000000000:8", "0x4008000000000000:8", "0x4010000000000000:8", "0x401c000000000000:8", "0x4014000000000000:8"
	hex := func(text string) string { return hexadecimal(t, text) }
	d := startTracer(t, compile(t))
	c := NewCatalog()
	var functions []*Function
	want := []struct{ name, started, ended string }{
		{"integers", "97 200 -3 4000000000 -5 18000000000000000000 -7 -8 1", "-6"},
		{"floats", "0.5f 1.5f 3 2.5f 3.5f 4.5f 5.5f 6.5f 7.5f 8.5f 9.5f", "53f"},
		{"extended", "2 1.25f 3", "5.5f"},
		{"strings", `"here" "there" 0`, "*"},
		{"points", hex(one+" "+two) + " " + hex("3:8 "+four) + " " + hex("99:1 0:1 6:2") + " " + hex("1:8 2:8 3:8 4:8 5:8") + " -1",
			hex("0x4014000000000000:8 0x402e000000000000:8")},
		{"makes", "40", hex("40:8 41:8 42:8 43:8 44:8")},
		{"mixes", hex("0x11:4 3:4 0x40200000:4") + " 7", hex("11:8 0x4004000000000000:8")},
		{"nothing", "0 * *", "0"},
		{"various", `"%d %s"`, "5"},
		{"outer", "20", "64"},
		{"inner", "21", "63"},
		{"inner", "30", "90"},
		{"wide", hex("5:8 1:8") + " 6", hex("11:8 1:8")},
		{"complicated", hex("0x3f800000:4 0x40000000:4") + " " + hex(three+" "+four), hex("0x40800000:4 0x40c00000:4")},
		{"versioned", "5", "7"},
		{"chosen", "6", "600"},
		{"plain", "4 * 4 * * *", "3"},
		{"own", "3", "14"},
	}
	last := ""
	for _, w := range want {
		switch {
		case w.name == last || w.name == "versioned":
		case w.name == "chosen": // not called yet: there are two choices
			functions = append(functions, mustFind(t, c, d, w.name)...)
		default:
			functions = append(functions, find(t, c, d, w.name))
		}
		last = w.name
	}
	both, err := c.Find(d.id, "versioned")
	if err != nil || len(both) != 2 {
		t.Fatalf("versions: %v, %v", both, err)
	}
	functions = append(functions, both...)
	calls := d.observe(functions...)
	if len(calls) != len(want) {
		t.Fatalf("%d calls, want %d", len(calls), len(want))
	}
	for i, w := range want {
		call := calls[i]
		started, ended := show(call.started), ""
		if len(call.ended) > 0 {
			ended = show(call.ended[:1])
		}
		if call.f.Name != w.name || !matches(started, w.started) || !matches(ended, w.ended) {
			t.Errorf("call %d: %s(%s) = %s\nwant %s(%s) = %s", i, call.f.Name, started, ended, w.name, w.started, w.ended)
		}
		// outer calls inner.
		if inside := w.started == "21"; call.application == inside {
			t.Errorf("%s(%s): called by the application is %v", w.name, w.started, call.application)
		}
	}
}

// matches compares word by word; * matches any word.
func matches(text, pattern string) bool {
	words, patterns := strings.Fields(text), strings.Fields(pattern)
	if len(words) != len(patterns) {
		return text == pattern
	}
	for i, p := range patterns {
		if p != "*" && p != words[i] {
			return false
		}
	}
	return true
}

func TestPrototypeFileTypesCalls(t *testing.T) {
	d := startTracer(t, compile(t))
	c := NewCatalog()
	if err := c.Describe(prototype.File{Name: "a.prototypes", Text: "int plain(int fd, out(result) void *buf, size_t n);\nunsigned own(short n);"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Describe(prototype.File{Name: "b.prototypes", Text: "int plain(int);\nint plain(colour c);"}); err == nil || !strings.Contains(err.Error(), "b.prototypes:2:11: ") || !strings.Contains(err.Error(), "colour is not known") {
		t.Error(err)
	}
	calls := d.observe(find(t, c, d, "plain"), find(t, c, d, "own"))
	if got := show(calls[0].started[:1]) + " " + show(calls[0].started[2:]); got != "4 4" {
		t.Errorf("plain starts with %s", show(calls[0].started))
	}
	if got := show(calls[0].ended); got != "3 4 #7a7a7a 4" {
		t.Errorf("plain ends with %s", got)
	}
	if got := show(calls[1].ended); got != "14 3" {
		t.Errorf("own ends with %s", got)
	}
}

func TestVersions(t *testing.T) {
	d := startTracer(t, compile(t))
	c := NewCatalog()
	for name, want := range map[string]string{"versioned@SHAPES_1": "SHAPES_1", "versioned@@SHAPES_2": "SHAPES_2"} {
		if f := find(t, c, d, name); f.Version != want || !strings.HasSuffix(f.Module, "/libshapes.so") {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for _, name := range []string{"versioned@SHAPES_3", "no_such_function", "there", "main_is_not_it"} {
		if f, err := c.Find(d.id, name); err == nil || !strings.Contains(err.Error(), "no exported function "+name) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
}

// TestImplementationsAreThoseThatAreCalled checks functions of which the C library has
// several implementations.
func TestImplementationsAreThoseThatAreCalled(t *testing.T) {
	d := startTracer(t, compile(t))
	c := NewCatalog()
	for _, name := range []string{"memcpy", "strlen", "memchr", "chosen"} {
		found, err := c.Find(d.id, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, f := range found {
			if f.Addr < f.Own[0].Start || f.Addr >= f.Own[0].End {
				t.Errorf("%s at %#x is not in %+v", name, f.Addr, f.Own)
			}
		}
	}
	// The libraries of the test call each function once.
	seen := make(map[string]int)
	for _, call := range d.observe(append(mustFind(t, c, d, "strlen"), mustFind(t, c, d, "memset")...)...) {
		if call.application {
			seen[call.f.Name]++
		}
	}
	if seen["strlen"] != 1 || seen["memset"] != 1 {
		t.Errorf("calls %v", seen)
	}
}

func mustFind(t testing.TB, c *Catalog, d *tracer, name string) []*Function {
	t.Helper()
	found, err := c.Find(d.id, name)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTargetOfMmul(t *testing.T) {
	p := targets.Start(t, "mmul", "--wait", "1", "8", "1")
	id, err := proc.Identify(p.PID)
	if err != nil {
		t.Fatal(err)
	}
	c := NewCatalog()
	for _, w := range []struct {
		name, module string
		params       int
		program      bool
	}{
		{"fill", "/libmmul.so", 3, false}, {"calm", "/libmmul.so", 1, false}, {"multiply", "/mmul", 3, true}, {"pthread_create", "/libc.so.6", 6, false},
	} {
		found, err := c.Find(id, w.name)
		if err != nil {
			if w.name != "calm" { // the program may contain it
				t.Error(err)
			}
			continue
		}
		f := found[0]
		if w.name != "calm" && (!strings.HasSuffix(f.Module, w.module) || f.Program != w.program) {
			t.Errorf("%s: %+v", w.name, f)
		}
		compareWithNm(t, p.PID, f)
	}
	for name, mangled := range map[string]string{"std::terminate": "_ZSt9terminatev", "std::exception::what": "_ZNKSt9exception4whatEv"} {
		a, err := c.Find(id, name)
		b, err2 := c.Find(id, mangled)
		if err != nil || err2 != nil || len(a) != 1 || a[0].Addr != b[0].Addr {
			t.Errorf("%s: %v, %v, %v", name, a, err, err2)
		}
	}
	fill, err := c.Find(id, "fill")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(fill[0].Proto.Params); n != 3 || fill[0].Proto.Params[2].Name != "seed" {
		t.Errorf("%+v", fill[0].Proto)
	}
	if start, end := fill[0].NeedsFP(); start || end {
		t.Error("a function without floating point values needs their registers")
	}
}

// compareWithNm compares an address, converted to the file's, with the output of nm.
func compareWithNm(t *testing.T, pid int, f *Function) {
	t.Helper()
	id, _ := proc.Identify(pid)
	modules, err := proc.Modules(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modules {
		if m.Path != f.Module {
			continue
		}
		args := []string{"-D", m.Path}
		if f.Program {
			args = args[1:]
		}
		out, err := exec.Command("nm", args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		if line := fmt.Sprintf("%016x T %s", f.Addr-m.Bias, f.Name); !bytes.Contains(out, []byte(line)) {
			t.Errorf("nm %s does not print %s", m.Path, line)
		}
	}
}

func TestMalformedFiles(t *testing.T) {
	for _, content := range []string{"", "\x7fELF", "\x7fELF\x02\x01\x01" + strings.Repeat("\xff", 200), strings.Repeat("\x00", 4096)} {
		if im, err := readImage(strings.NewReader(content), "file", false); err == nil {
			t.Errorf("%q: %+v", content, im)
		}
		if f := debugged(t.Context(), strings.NewReader(content), "f", 1); f != nil {
			t.Errorf("%q: %+v", content, f)
		}
	}
}

func TestUntypedWithoutRegisters(t *testing.T) {
	f := &Function{Name: "f", Proto: prototype.Untyped("f")}
	var r Registers
	r.Rdi, r.R9, r.Rax = 1, 6, 7
	values, args := f.Started(&r, nil)
	if got := show(values); got != "1 0 0 0 0 6" {
		t.Error(got)
	}
	if got := show(f.Ended(args, &r, nil)[:1]); got != "7" {
		t.Error(got)
	}
}

// BenchmarkCall decodes the start and the end of a call with strings and buffers, which
// the monitor does while the thread is held.
func BenchmarkCall(b *testing.B) {
	proto, err := prototype.ParseOne("ssize_t f(const char *name, in(8) const void *key, out(result) void *buf, size_t n);")
	if err != nil {
		b.Fatal(err)
	}
	f := &Function{Name: "f", Proto: proto}
	var r Registers
	r.Rdi, r.Rsi, r.Rdx, r.Rcx, r.Rax = 0x1000, 0x1000, 0x1000, 64, 32
	mem := func(buf []byte, _ uint64) (int, error) { return copy(buf, "a name\x00 and more that is read"), nil }
	for b.Loop() {
		_, args := f.Started(&r, mem)
		f.Ended(args, &r, mem)
	}
}

func TestModuleOfName(t *testing.T) {
	d := startTracer(t, compile(t))
	c := NewCatalog()
	find(t, c, d, "libplain.so:plain")
	var later *NotLoaded
	if _, err := c.Find(d.id, "libnone.so:plain"); !errors.As(err, &later) || later.Name != "libnone.so:plain" {
		t.Errorf("a module that is not loaded yet: %v", err)
	}
	if _, err := c.Find(d.id, "libshapes.so:plain"); err == nil || errors.As(err, &later) {
		t.Errorf("a module without the function: %v", err)
	}
	if l, found := c.Linker(d.id); !found || l.Notice == 0 || l.Loading {
		t.Errorf("the linker: %+v, %v", l, found)
	}
}
