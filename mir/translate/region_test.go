package translate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mirador/mir"
	"mirador/sir"
)

// TestFindUnitByName finds units by demangled names, with and without the program and the
// parameters, and reports names that several units share.
func TestFindUnitByName(t *testing.T) {
	units := []sir.Region{
		{ID: "shop:_ZN4shop4ItemC1Ei", Name: "shop::Item::Item(int)", Symbol: "_ZN4shop4ItemC1Ei"},
		{ID: "shop:_ZNK4shop4Item5priceEv", Name: "shop::Item::price() const", Symbol: "_ZNK4shop4Item5priceEv"},
		{ID: "shop:_ZN4shop3addEi", Name: "shop::add(int)", Symbol: "_ZN4shop3addEi"},
		{ID: "shop:_ZN4shop3addEd", Name: "shop::add(double)", Symbol: "_ZN4shop3addEd"},
		{ID: "shop:_ZN4shop4mostIiEET_S1_", Name: "int shop::most<int>(int)", Symbol: "_ZN4shop4mostIiEET_S1_"},
		{ID: "shop:_ZN4cart4push17h0123456789abcdefE", Name: "cart::push", Symbol: "_ZN4cart4push17h0123456789abcdefE"},
	}
	program := &sir.Program{Regions: units}
	shop := Module{Path: "/usr/bin/shop", Units: sir.NewIndex(program)}
	targets := &Targets{Processes: []Process{{Token: "p_1", Modules: []Module{shop}}}}
	for name, want := range map[string]string{
		"shop:_ZN4shop3addEi":            "shop:_ZN4shop3addEi",
		"shop::add(int)":                 "shop:_ZN4shop3addEi",
		"shop:shop::add(double)":         "shop:_ZN4shop3addEd",
		"shop::Item::price":              "shop:_ZNK4shop4Item5priceEv",
		"shop:shop::Item::price":         "shop:_ZNK4shop4Item5priceEv",
		"shop:shop::Item::price() const": "shop:_ZNK4shop4Item5priceEv",
		"shop::most<int>":                "shop:_ZN4shop4mostIiEET_S1_",
		"cart::push":                     "shop:_ZN4cart4push17h0123456789abcdefE",
		"shop:cart::push":                "shop:_ZN4cart4push17h0123456789abcdefE",
	} {
		found, err := findNamed(name, mir.Position{}, targets)
		if err != nil || len(found) != 1 || found[0].ID != want {
			t.Errorf("%s: found %v, %v; want %s", name, found, err, want)
		}
	}
	for name, words := range map[string]string{
		"shop::add":        "2 units are called shop::add",
		"shop:shop::add":   "2 units are called",
		"price":            "no unit price",
		"Item::price":      "no unit",
		"other:cart::push": "no unit",
	} {
		if _, err := findNamed(name, mir.Position{}, targets); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", name, err, words)
		}
	}
}

// TestCatalogSaysAggregates checks that each metric that can be measured says what its aggregates are over.
func TestCatalogSaysAggregates(t *testing.T) {
	for _, m := range Catalog() {
		onRegion := strings.Contains(m.Aggregate, "on a region")
		if (m.Aggregate == "") != (m.Unavailable != "") || onRegion != m.Region && m.Unavailable == "" {
			t.Errorf("%s: %q", m.Name, m.Aggregate)
		}
	}
}

// TestFindInside finds regions inside functions by their ids, and says which regions there are.
func TestFindInside(t *testing.T) {
	program := &sir.Program{Regions: []sir.Region{{ID: "web:net/http.Get", Name: "net/http.Get", Kind: sir.Function}, {ID: "web:bad", Name: "bad", Kind: sir.Function},
		{ID: "web:_ZN4Cart5totalEv", Name: "Cart::total()", Kind: sir.Function}}}
	web := Module{Units: sir.NewIndex(program)}
	targets := &Targets{Processes: []Process{{Token: "p_1", Modules: []Module{web}}}}
	targets.Inside = func(_ *Module, of *sir.Region) ([]sir.Region, error) {
		if of.Name == "bad" {
			return nil, errors.New("not understood")
		}
		return []sir.Region{{ID: of.ID + "/loop1", Code: &sir.Code{}, Regions: []sir.Region{{ID: of.ID + "/loop1/body", Code: &sir.Code{}}}}}, nil
	}
	for _, id := range []string{"web:net/http.Get/loop1", "web:net/http.Get/loop1/body"} {
		r, _, err := findRegion(&mir.CodeRegion{From: id}, targets)
		if err != nil || len(r.copies) != 1 || r.copies[0].ID != id || r.name != id {
			t.Errorf("%s: %+v, %v", id, r, err)
		}
	}
	r, _, err := findRegion(&mir.CodeRegion{From: "web:Cart::total/loop1/body"}, targets) // as the structure of the source has it
	if err != nil || r.name != "web:_ZN4Cart5totalEv/loop1/body" {
		t.Errorf("a region of a function by its name: %+v, %v", r, err)
	}
	for id, words := range map[string]string{
		"web:net/http.Get/loop2":       "web:net/http.Get has no region loop2; it has loop1",
		"web:net/http.Get/loop1/body2": "has no region loop1/body2",
		"web:net/http.Put":             "no unit",
		"web:bad/loop1":                "not understood",
	} {
		if _, _, err := findRegion(&mir.CodeRegion{From: id}, targets); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", id, err, words)
		}
	}
}

// TestFindLine finds lines of the source by program, file and number, and says why there is none.
func TestFindLine(t *testing.T) {
	module := func(name string, lines ...int) Module {
		p := &sir.Program{Path: "/lib/" + name, Regions: []sir.Region{{ID: name + ":f", Name: "f"}}}
		return Module{Path: p.Path, Units: sir.NewIndex(p), Line: func(_ context.Context, file string, line int) (*sir.Region, error) {
			switch {
			case file == "bad.c":
				return nil, errors.New("not understood")
			case file != "a.c":
				return nil, &sir.LineError{Program: name, File: file, Why: "no such file"}
			case !slices.Contains(lines, line):
				return nil, &sir.LineError{Program: name, File: file, Line: line, Near: lines}
			}
			return &sir.Region{ID: fmt.Sprintf("%s:%s:%d", name, file, line), Kind: sir.Line, Code: &sir.Code{}}, nil
		}}
	}
	targets := &Targets{Processes: []Process{{Token: "p_1", Modules: []Module{module("web", 3, 7), module("lib", 7, 9)}}}}
	targets.Line = func(m *Module, file string, line int) (*sir.Region, error) { return m.Line(t.Context(), file, line) }
	for id, want := range map[string]string{"web:a.c:3": "web:a.c:3", "a.c:3": "web:a.c:3", "a.c:9": "lib:a.c:9", "lib:a.c:7": "lib:a.c:7"} {
		r, _, err := findRegion(&mir.CodeRegion{From: id}, targets)
		if err != nil || len(r.copies) != 1 || r.name != want {
			t.Errorf("%s: %+v, %v", id, r, err)
		}
	}
	for id, words := range map[string]string{
		"web:a.c:5":   "no statement of web begins at line 5 of a.c; the nearest lines where one begins: 3 7",
		"a.c:7":       "2 programs have code of a.c:7",
		"web:b.c:7":   "no such file",
		"web:bad.c:7": "not understood",
		"web:a.c:0":   "no unit web:a.c:0",
	} {
		if _, _, err := findRegion(&mir.CodeRegion{From: id}, targets); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", id, err, words)
		}
	}
}

// TestFindInlined finds functions that are only inlined, behind all others.
func TestFindInlined(t *testing.T) {
	program := &sir.Program{Regions: []sir.Region{{ID: "a:f", Name: "f", Kind: sir.Function}}}
	module := Module{Units: sir.NewIndex(program)}
	targets := &Targets{Processes: []Process{{Token: "p_1", Modules: []Module{module}}}}
	targets.Inlined = func(_ *Module, name string) (*sir.Region, error) {
		switch name {
		case "f", "g":
			return &sir.Region{ID: "a:" + name, Kind: sir.Inlined, Code: &sir.Code{}}, nil
		case "twin":
			return nil, errors.New("2 inlined functions have this name")
		}
		return nil, nil
	}
	for name, kind := range map[string]sir.Kind{"a:f": sir.Function, "f": sir.Function, "a:g": sir.Inlined, "g": sir.Inlined} {
		if found, err := findNamed(name, mir.Position{}, targets); err != nil || len(found) != 1 || found[0].Kind != kind {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
	for name, words := range map[string]string{"a:twin": "2 inlined functions have this name", "h": "no unit h"} {
		if _, err := findNamed(name, mir.Position{}, targets); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCopies finds a function with all places where it is inlined, and says where a function has code that is not
// measured.
func TestCopies(t *testing.T) {
	program := &sir.Program{Regions: []sir.Region{{ID: "a:f", Name: "f", Kind: sir.Function}, {ID: "a:alone", Name: "alone", Kind: sir.Function}}}
	module := Module{Units: sir.NewIndex(program), Locator: &located{entries: []uint64{0x10}}}
	targets := &Targets{Processes: []Process{{Token: "p_1", Modules: []Module{module}}}}
	targets.Inside = func(*Module, *sir.Region) ([]sir.Region, error) { return nil, nil }
	targets.Inlined = func(_ *Module, name string) (*sir.Region, error) {
		if name != "g" {
			return nil, nil
		}
		return &sir.Region{ID: "a:g", Kind: sir.Inlined, Code: &sir.Code{}}, nil
	}
	targets.Whole = func(_ *Module, unit *sir.Region) (*sir.Region, error) {
		if unit.ID == "a:alone" {
			return nil, errors.New("no debug information")
		}
		return &sir.Region{ID: unit.ID + sir.AllSuffix, Kind: sir.All, Code: &sir.Code{}}, nil
	}
	copies := sir.Copies{}
	targets.Copies = func(*Module, *sir.Region) sir.Copies { return copies }
	for name, id := range map[string]string{"a:f/all": "a:f/all", "f/all": "a:f/all", "a:g/all": "a:g", "g/all": "a:g"} {
		if found, err := findNamed(name, mir.Position{}, targets); err != nil || len(found) != 1 || found[0].ID != id {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
	if _, err := findNamed("a:alone/all", mir.Position{}, targets); err == nil || !strings.Contains(err.Error(), "no debug information") {
		t.Errorf("a function without debug information: %v", err)
	}
	for _, c := range []struct {
		copies sir.Copies
		says   string
	}{
		{sir.Copies{}, ""},
		{sir.Copies{Into: []string{"b", "c"}, Places: 3}, "a:f is also inlined into b, c, at 3 places: executions of that code are not measured; name a:f/all to measure them too"},
		{sir.Copies{Into: []string{"b", "c", "d", "e"}, Places: 7, More: true}, "a:f is also inlined into b, c, d and 1 others, at no less than 7 places"},
		{sir.Copies{Versions: []string{"f.constprop.0"}}, "a:f has versions for certain arguments, f.constprop.0: executions"},
		{sir.Copies{More: true}, "a:f may also be inlined elsewhere: executions"},
	} {
		copies = c.copies
		p, err := Instrument(&mir.InstrRequest{Region: &mir.CodeRegion{From: "a:f"}, Metrics: []mir.Metric{{Name: "COUNT"}}}, targets)
		if err != nil || !strings.HasPrefix(p.Besides, c.says) || (c.says == "") != (p.Besides == "") {
			t.Errorf("%+v: %+v, %v", c.copies, p, err)
		}
	}
}

// TestRegionsOfSources says how to measure a region that only the structure of a source has.
func TestRegionsOfSources(t *testing.T) {
	program := &sir.Program{Regions: []sir.Region{{ID: "a:f", Name: "f", Kind: sir.Function}}}
	module := Module{Units: sir.NewIndex(program)}
	targets := &Targets{Processes: []Process{{Token: "p_1", Modules: []Module{module}}}}
	targets.Inside = func(*Module, *sir.Region) ([]sir.Region, error) { return []sir.Region{{ID: "a:f/loop1"}}, nil }
	const line = "name the line of its first statement"
	for id, words := range map[string]string{
		"a:f/loop1/if1.then": line, "a:f/switch2": line, "a:f/if3.elseif1": line, "a:f/loop2": "; it has loop1", "a:f/if": "; it has loop1",
	} {
		if _, err := findNamed(id, mir.Position{}, targets); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestConditionalPlaces requests an event under a condition where only the outcome of a branch counts.
func TestConditionalPlaces(t *testing.T) {
	loop := sir.Region{ID: "a:f/loop1", Kind: sir.Loop, Code: &sir.Code{When: map[uint64]sir.Condition{0x10: 6}}}
	program := &sir.Program{Regions: []sir.Region{{ID: "a:f", Name: "f", Kind: sir.Function}}}
	module := Module{Units: sir.NewIndex(program), Bias: 0x1000, Locator: &located{entries: []uint64{0x10, 0x20}}}
	targets := &Targets{Processes: []Process{{Token: "p_1", Modules: []Module{module}}}}
	targets.Inside = func(*Module, *sir.Region) ([]sir.Region, error) { return []sir.Region{loop}, nil }
	p, err := Instrument(&mir.InstrRequest{Region: &mir.CodeRegion{From: "a:f/loop1"}, Metrics: []mir.Metric{{Name: "COUNT"}}}, targets)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"pa_thread_reached_addr_if([p_1],0x1010,5) : pa_counter_add([pa_c_1],1)", "thread_reached_addr([p_1],0x1020) : pa_counter_add([pa_c_1],1)"}
	if got := p.Conditional(p.Imagined()); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestSharedExits checks which requests are refused for a region whose exits other code reaches.
func TestSharedExits(t *testing.T) {
	program := &sir.Program{Regions: []sir.Region{{ID: "a:f", Name: "f", Kind: sir.Function}}}
	module := Module{Units: sir.NewIndex(program)}
	targets := &Targets{Processes: []Process{{Token: "p_1", Modules: []Module{module}}}}
	targets.Inside = func(*Module, *sir.Region) ([]sir.Region, error) {
		return []sir.Region{{ID: "a:f/loop1", Code: &sir.Code{SharedExits: true}}, {ID: "a:f/loop2", Code: &sir.Code{}}}, nil
	}
	for _, c := range []struct {
		region          mir.CodeRegion
		traced, refused bool
	}{
		{mir.CodeRegion{From: "a:f/loop1"}, false, false},
		{mir.CodeRegion{From: "a:f/loop1", To: "a:f/loop1"}, false, false},
		{mir.CodeRegion{From: "a:f/loop1"}, true, true},
		{mir.CodeRegion{To: "a:f/loop1"}, false, true},
		{mir.CodeRegion{From: "a:f", To: "a:f/loop1"}, false, true},
		{mir.CodeRegion{From: "a:f/loop1", To: "a:f"}, false, false},
		{mir.CodeRegion{To: "a:f/loop2"}, true, false},
		{mir.CodeRegion{From: "a:f"}, true, false},
	} {
		p := &Plan{Traced: c.traced}
		if wrong := p.sharedExits(&c.region, targets); (wrong != nil) != c.refused {
			t.Errorf("%+v, traced %v: %v", c.region, c.traced, wrong)
		}
	}
}
