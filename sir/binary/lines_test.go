package binary

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// addr2line is the oracle for lines. It returns "file:line" for each address, the file without
// its directory.
func addr2line(t *testing.T, path string, addrs []uint64) []string {
	t.Helper()
	args := []string{"-e", path}
	for _, a := range addrs {
		args = append(args, fmt.Sprintf("%#x", a))
	}
	var places []string
	for line := range strings.Lines(run(t, "addr2line", args...)) {
		place, _, _ := strings.Cut(strings.TrimSpace(line), " (") // remove the discriminator
		places = append(places, filepath.Base(place))
	}
	return places
}

func place(file string, line int) string {
	if file == "" {
		return "??:0"
	}
	return fmt.Sprintf("%s:%d", filepath.Base(file), line)
}

// sameLine compares places. For C++, addr2line sometimes prints the file of the compile unit
// instead of the header, so only the line is compared.
func sameLine(a, b string, cxx bool) bool {
	_, lineA, _ := strings.Cut(a, ":")
	_, lineB, _ := strings.Cut(b, ":")
	return a == b || cxx && lineA == lineB
}

// unknown unifies the two ways in which addr2line reports an unknown line.
func unknown(place string) string {
	if strings.HasSuffix(place, ":?") || strings.HasPrefix(place, "??") {
		return "??:0"
	}
	return place
}

func TestLinesAgreeWithAddr2line(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variant, im *Image) {
		var addrs []uint64
		var got []string
		for i, u := range program(im).Regions {
			if i > 300 {
				break
			}
			addrs = append(addrs, u.Entry)
			got = append(got, place(im.lines.at(context.Background(), u.Entry)))
			for _, offset := range []uint64{1, u.Size / 3, u.Size / 2, u.Size - 1} {
				addrs = append(addrs, u.Entry+offset)
				got = append(got, place(im.lines.at(context.Background(), u.Entry+offset)))
			}
		}
		known := 0
		for i, want := range addr2line(t, im.Path(), addrs) {
			if want = unknown(want); !sameLine(got[i], want, strings.HasPrefix(v.name, "cxx")) {
				t.Errorf("%#x: %s, addr2line says %s", addrs[i], got[i], want)
			}
			if want != "??:0" {
				known++
			}
		}
		if hasDebug := strings.Contains(strings.Join(v.flags, " "), "-g"); hasDebug && known < 20 {
			t.Errorf("only %d lines known", known)
		}
	})
}

// TestUnitsAreAtTheirDefinitions checks that the line of a unit contains its name.
func TestUnitsAreAtTheirDefinitions(t *testing.T) {
	source, err := os.ReadFile("testdata/shapes.c")
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(source, []byte("\n"))
	for _, variant := range []string{"O0", "O2", "O2-dwarf4", "O2-compressed", "static"} {
		im := open(t, named(t, variant))
		for _, symbol := range []string{"returns_1", "tail_direct", "switch_dense", "never_ends", "unlikely_part", "main"} {
			u := unit(t, im, symbol)
			if u.Line < 1 || !bytes.Contains(lines[u.Line-1], []byte(symbol+"(")) || filepath.Base(u.File) != "shapes.c" {
				t.Errorf("%s: %s at %s:%d", variant, symbol, u.File, u.Line)
			}
		}
	}
}

func TestSeparateDebugFile(t *testing.T) {
	full := named(t, "O2")
	want := program(open(t, full))
	dir := t.TempDir()
	stripped := filepath.Join(dir, "O2") // the same name, so that the ids are the same
	debug := filepath.Join(dir, "debug", ".build-id", want.BuildID[:2], want.BuildID[2:]+".debug")
	if err := os.MkdirAll(filepath.Dir(debug), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "objcopy", "--only-keep-debug", full, debug)
	run(t, "strip", "-o", stripped, full)
	f, err := os.Open(stripped)
	if err != nil {
		t.Fatal(err)
	}
	im, err := New(stripped, f, DebugDir(filepath.Join(dir, "debug")))
	if err != nil {
		t.Fatal(err)
	}
	got := program(im)
	if len(got.Regions) != len(want.Regions) {
		t.Fatalf("%d units, want %d", len(got.Regions), len(want.Regions))
	}
	for i := range got.Regions {
		g, w := got.Regions[i], want.Regions[i]
		if g.ID != w.ID || g.File != w.File || g.Line != w.Line || g.Size != w.Size {
			t.Errorf("%+v, want %+v", g, w)
		}
	}
	if len(program(open(t, stripped)).Regions) >= len(want.Regions) {
		t.Error("the stripped program has all its symbols: nothing was tested")
	}
}

// TestFunctionsReadsNoLines compares Functions with Program: the units are the same but for
// files and lines, and no debug information has been read for them.
func TestFunctionsReadsNoLines(t *testing.T) {
	im := open(t, named(t, "O2"))
	got := im.Functions()
	if im.Units().ByName("main") == nil {
		t.Error("the index has no main")
	}
	if im.lines.data.value.Load() != nil {
		t.Error("debug information was read")
	}
	want := program(im)
	located := 0
	for i, w := range want.Regions {
		if w.File != "" {
			located++
		}
		w.File, w.Line = "", 0
		if !reflect.DeepEqual(got.Regions[i], w) {
			t.Errorf("unit %d is %+v, want %+v", i, got.Regions[i], w)
		}
	}
	if located == 0 || len(got.Regions) != len(want.Regions) {
		t.Errorf("%d of %d units have a file, of %d", located, len(want.Regions), len(got.Regions))
	}
}
