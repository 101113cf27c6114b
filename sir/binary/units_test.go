package binary

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mirador/sir"
)

// readelfFunctions is the oracle for units. It returns every defined function of the symbol
// tables, by address.
func readelfFunctions(t *testing.T, path string) (names map[uint64][]string, sizes map[uint64]uint64, ifuncs map[uint64]bool) {
	t.Helper()
	names, sizes, ifuncs = map[uint64][]string{}, map[uint64]uint64{}, map[uint64]bool{}
	plain := map[uint64]bool{}
	for line := range strings.Lines(run(t, "readelf", "-sW", path)) {
		f := strings.Fields(line)
		if len(f) < 8 || f[3] != "FUNC" && f[3] != "IFUNC" || f[6] == "UND" {
			continue
		}
		addr, err1 := strconv.ParseUint(f[1], 16, 64)
		size, err2 := strconv.ParseUint(f[2], 0, 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("cannot read %q", line)
		}
		names[addr] = append(names[addr], strings.Split(strings.Join(f[7:], " "), "@")[0])
		sizes[addr] = max(sizes[addr], size)
		plain[addr] = plain[addr] || f[3] == "FUNC"
	}
	for addr := range names {
		ifuncs[addr] = !plain[addr]
	}
	return names, sizes, ifuncs
}

func TestUnitsAgreeWithReadelf(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variant, im *Image) { compareUnits(t, im, v.strip) })
}

// TestUnitsOfRealPrograms does the same with programs of others.
func TestUnitsOfRealPrograms(t *testing.T) {
	fortran := filepath.Join(t.TempDir(), "looping")
	run(t, "gfortran", "-J", t.TempDir(), "-o", fortran, "testdata/looping.f90")
	for path, least := range map[string]int{
		"/bin/bash": 1000,
		"/usr/lib/x86_64-linux-gnu/libsqlite3.so.0":                               200,
		strings.TrimSpace(run(t, "g++", "-print-file-name=libstdc++.so.6")):       3000,
		filepath.Join(strings.TrimSpace(run(t, "go", "env", "GOTOOLDIR")), "asm"): 3000,
		fortran: 4,
	} {
		if n := compareUnits(t, open(t, path), true); n < least {
			t.Errorf("%s has %d functions with symbols", path, n)
		}
	}
}

// compareUnits compares units with the functions of readelf. It returns how many have symbols.
func compareUnits(t *testing.T, im *Image, stripped bool) (known int) {
	t.Helper()
	names, sizes, ifuncs := readelfFunctions(t, im.Path())
	seen := map[uint64]bool{}
	for _, u := range im.functions().Regions {
		seen[u.Entry] = true
		if stripped && strings.HasPrefix(u.Symbol, sir.Unnamed) {
			continue // tested by TestStrippedFunctions
		}
		known++
		if !slices.Contains(names[u.Entry], u.Symbol) {
			t.Errorf("%s at %#x, readelf knows %q there", u.Symbol, u.Entry, names[u.Entry])
		}
		if want := sizes[u.Entry]; want != 0 && u.Size != want {
			t.Errorf("%s has size %d, want %d", u.Symbol, u.Size, want)
		}
	}
	for addr, aliases := range names {
		cold := slices.ContainsFunc(aliases, func(n string) bool { return strings.Contains(n, ".cold") })
		if !seen[addr] && !ifuncs[addr] && !cold {
			t.Errorf("no unit at %#x, readelf says %q", addr, aliases)
		}
	}
	return known
}

func TestIDsAreUnique(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variant, im *Image) {
		ids := map[string]bool{}
		for _, u := range program(im).Regions {
			if ids[u.ID] || !strings.HasPrefix(u.ID, v.name+":") {
				t.Errorf("id %s", u.ID)
			}
			ids[u.ID] = true
		}
	})
}

func TestIDsSurviveARebuild(t *testing.T) {
	ids := func(variant string) (ids []string) {
		for _, u := range program(open(t, named(t, variant))).Regions {
			if strings.Contains(u.Symbol, "_") && !strings.HasPrefix(u.Symbol, "_") && !strings.Contains(u.Symbol, ".") {
				_, id, _ := strings.Cut(u.ID, ":")
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		return slices.DeleteFunc(ids, func(id string) bool { // functions of the C runtime depend on the linking
			return !slices.ContainsFunc([]string{"returns_", "tail_", "switch_", "never_", "well_", "unlikely_"}, func(p string) bool { return strings.HasPrefix(id, p) })
		})
	}
	want := ids("O2")
	if len(want) < 10 {
		t.Fatalf("only %q", want)
	}
	for _, other := range []string{"O0", "O2-nopie", "static", "stripped"} {
		if got := ids(other); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", other, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	im := open(t, named(t, "cxx-O2"))
	byName := map[string]string{}
	var twins, constructors int
	for _, u := range program(im).Regions {
		byName[u.Name] = u.ID
		if u.Name == "twin()" {
			twins++
			if !strings.HasSuffix(u.ID, "~twin_a.cc") && !strings.HasSuffix(u.ID, "~twin_b.cc") {
				t.Errorf("id %s does not tell the twins apart by their files", u.ID)
			}
		}
		if u.Name == "shapes::Shape::Shape(int)" {
			constructors++
		}
	}
	if twins != 2 || constructors != 1 {
		t.Errorf("%d functions twin() and %d constructors, want 2 and 1", twins, constructors)
	}
	for _, want := range []string{"shapes::Shape::area(int) const", "caught(shapes::Shape const&, int)", "main"} {
		if byName[want] == "" {
			t.Errorf("no function %s", want)
		}
	}
}

func TestAliasesAreOneUnit(t *testing.T) {
	im := open(t, named(t, "O2"))
	unit(t, im, "well_known")
	for _, u := range program(im).Regions {
		if u.Symbol == "__internal_name" || u.Symbol == "by_resolver" || strings.Contains(u.Symbol, ".cold") {
			t.Errorf("%s is a unit", u.Symbol)
		}
	}
	unit(t, im, "resolve") // the resolver under its own name
}

func TestSourceName(t *testing.T) {
	for symbol, want := range map[string]string{
		"dot":                    "dot",
		"dot.constprop.0":        "dot",
		"dot.isra.0.part.3":      "dot",
		"dot.cold":               "dot.cold",
		"inner.1":                "inner",
		"main.main.func1.1":      "main.main.func1.1",
		"main._omp_fn.0":         "main._omp_fn.0",
		"main.(*T).Method.func1": "main.(*T).Method.func1",
		"_ZN4mmul5riskyEi":       "mmul::risky(int)",
		"_Z3fooi.isra.0":         "foo(int)",
		"_Zbroken":               "_Zbroken",
		"a\x01b\xff":             `a\x01b\xff`,
		"größe":                  "größe",
	} {
		if got := sourceName(symbol); got != want {
			t.Errorf("sourceName(%q) = %q, want %q", symbol, got, want)
		}
	}
}
