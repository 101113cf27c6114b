package source

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mirador/sir"
	"mirador/sir/binary"
	"mirador/sir/source/outline"
)

func output(t testing.TB, name string, args ...string) string {
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

// numbered matches the symbol of a procedure inside another one in Fortran.
var numbered = regexp.MustCompile(`\b(inner|other)\.\d+`)

// compiled returns the structure of a program, with the functions whose ids begin with a prefix.
func compiled(t *testing.T, path, prefix string) sir.Program {
	t.Helper()
	im, err := binary.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := im.Program(t.Context())
	if err == nil {
		s := sir.Structure{Programs: []sir.Program{p}}
		p, err = im.WithInside(t.Context(), s.Around(prefix).Programs[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// same checks that functions and loops have the same ids in sources and in the program that is built
// from them, and that the calls of the program's own functions in the sources are in the program.
func same(t *testing.T, source, program sir.Program) {
	t.Helper()
	own := map[string]bool{}
	for _, of := range []*sir.Program{&source, &program} {
		for r := range of.All() {
			own[r.ID] = own[r.ID] || of == &program && r.Code == nil
		}
	}
	kept := func(r *sir.Region) bool {
		_, callee, isCall := strings.Cut(r.ID, "/call.")
		callee, _, _ = strings.Cut(callee, "~")
		base, _, _ := strings.Cut(r.ID, ":")
		return outline.HasCode(r.Kind) || r.Kind == sir.Loop || r.Kind == sir.Body || isCall && own[base+":"+callee]
	}
	a, b := ids(&source, kept), ids(&program, kept)
	for i, id := range b {
		b[i] = numbered.ReplaceAllString(id, "$1")
	}
	more := slices.DeleteFunc(missing(b, a), func(id string) bool { return strings.Contains(id, "/call.") })
	if len(a) < 10 || len(missing(a, b)) > 0 || len(more) > 0 {
		t.Errorf("source only: %q\nprogram only: %q\n%d are the same", missing(a, b), more, len(a)-len(missing(a, b)))
	}
}

func missing(a, b []string) (list []string) {
	for _, s := range a {
		if !slices.Contains(b, s) {
			list = append(list, s)
		}
	}
	return list
}

func TestIDsOfGo(t *testing.T) {
	dir := t.TempDir()
	output(t, "go", "build", "-gcflags=-l", "-o", filepath.Join(dir, "closures"), "./testdata/closures")
	r := resource(t, "testdata/closures/main.go")
	p := read(t, "closures", r)
	sound(t, &p, []Resource{r})
	program := compiled(t, filepath.Join(dir, "closures"), "closures:main.")
	program.Regions = slices.DeleteFunc(program.Regions, func(r sir.Region) bool { return r.ID == "closures:main.init" })
	same(t, p, program)
}

func TestIDsOfC(t *testing.T) {
	mmul, _ := filepath.Glob("../../examples/targets/mmul/*.[ch]")
	for name, files := range map[string][]string{
		"mmul": mmul, "loops": {"../binary/testdata/loops.c"}, "shapes": {"../binary/testdata/shapes.c"}, "turns": {"testdata/turns.c", "testdata/turns.h"},
	} {
		path := filepath.Join(t.TempDir(), name)
		args := []string{"-O0", "-g", "-w", "-pthread", "-o", path}
		var resources []Resource
		for _, f := range files {
			resources = append(resources, resource(t, f))
			if filepath.Ext(f) == ".c" {
				args = append(args, f)
			}
		}
		if name == "mmul" { // its other parts are not in C
			args = append(args, "-shared", "-fPIC", "-Wl,-Bsymbolic")
		}
		output(t, "gcc", append(args, "-lm")...)
		p := read(t, name, resources...)
		sound(t, &p, resources)
		program := compiled(t, path, name+":")
		program.Regions = slices.DeleteFunc(program.Regions, func(r sir.Region) bool {
			return r.File == "" || r.Symbol == "switch_table_behind" || r.Symbol == "jumps" // in assembler; a loop that a goto makes
		})
		p.Regions = slices.DeleteFunc(p.Regions, func(r sir.Region) bool { return r.Symbol == "jumps" })
		same(t, p, program)
	}
}

func TestIDsOfFortran(t *testing.T) {
	for _, c := range []struct {
		program, main string
		files         []string
	}{
		{"grid", "grid.f90", []string{"grid.f90"}},
		{"fixed", "fixed.f", []string{"fixed.f"}},
	} {
		path := filepath.Join(t.TempDir(), c.program)
		args := []string{"-O0", "-g", "-w", "-J", t.TempDir(), "-o", path}
		var resources []Resource
		for _, f := range c.files {
			resources = append(resources, resource(t, filepath.Join("testdata", f)))
			args = append(args, filepath.Join("testdata", f))
		}
		output(t, "gfortran", args...)
		p := read(t, c.program, resources...)
		sound(t, &p, resources)
		program := compiled(t, path, c.program+":")
		program.Regions = slices.DeleteFunc(program.Regions, func(r sir.Region) bool {
			return !strings.HasSuffix(r.File, c.main) || r.Symbol == "main" || strings.Contains(r.Symbol, "___copy_")
		})
		same(t, p, program)
	}
}

// TestNamesOfCPP checks that the functions of C++ sources have the names of those in the program, without
// their parameters, and the same loops inside. Instances of templates have arguments in their names.
func TestNamesOfCPP(t *testing.T) {
	path := filepath.Join(t.TempDir(), "classes")
	var resources []Resource
	args := []string{"-O0", "-g", "-w", "-o", path}
	for _, f := range []string{"classes.cc", "twin_a.cc", "twin_b.cc"} {
		resources = append(resources, resource(t, "../binary/testdata/"+f))
		args = append(args, "../binary/testdata/"+f)
	}
	output(t, "g++", args...)
	p := read(t, "classes", resources...)
	sound(t, &p, resources)
	program := compiled(t, path, "classes:")
	named := map[string][]sir.Region{}
	for _, r := range program.Regions {
		name, _, _ := strings.Cut(r.Name, "(")
		named[name] = append(named[name], r)
	}
	checked := 0
	for r := range p.All() {
		if !outline.HasCode(r.Kind) || r.Kind == sir.Lambda || r.Form == "template" {
			continue
		}
		found := named[r.Name]
		if len(found) == 0 {
			t.Errorf("the program has no function called %s", r.Name)
			continue
		}
		checked++
		a, b := loopsOf(r), loopsOf(&found[0])
		if len(found) == 1 && !slices.Equal(a, b) {
			t.Errorf("%s has the loops %q in the source, %q in the program", r.Name, a, b)
		}
	}
	if checked < 5 {
		t.Errorf("%d functions were compared", checked)
	}
}

// loopsOf returns the ids of the loops inside a function, without its own.
func loopsOf(r *sir.Region) (list []string) {
	whole := sir.Program{Regions: r.Regions}
	for inner := range whole.All() {
		if inner.Kind == sir.Loop {
			list = append(list, strings.TrimPrefix(inner.ID, r.ID))
		}
	}
	slices.Sort(list)
	return list
}
