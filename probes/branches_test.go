package probes_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mirador/mir"
	"mirador/probes"
	"mirador/probes/deliver"
	"mirador/sir"
)

// built is when the program of the harness was built.
var built = time.Now().Add(-time.Hour)

func (h *harness) declared(context.Context, *sir.Region) (string, int, time.Time, error) {
	return h.source, 2, built, nil
}

// lineOf finds a line of the program of the harness: the fourth one cannot be counted.
func lineOf(_ context.Context, file string, line int) (*sir.Region, error) {
	r := &sir.Region{ID: fmt.Sprintf("%s:%d", file, line), Kind: sir.Line, Code: &sir.Code{}}
	if line == 4 {
		r.Code.Uncounted = "it is the fourth"
	}
	return r, nil
}

// branch finds a branch of the program of the harness. It does not find a scope.
func (h *harness) branch(_ context.Context, choice, branch *sir.Region) (*sir.Region, error) {
	if choice == nil {
		return &sir.Region{ID: branch.ID, Kind: branch.Kind, Code: &sir.Code{Uncounted: "its code is not its own"}}, nil
	}
	if choice.Kind != sir.If || branch.Form != "then" {
		h.Errorf("the branch %+v of %+v", branch, choice)
	}
	return &sir.Region{ID: branch.ID, Kind: sir.Branch, Entry: entry, Code: &sir.Code{Entries: []uint64{entry}, Exits: []uint64{leave}}}, nil
}

// outlineOf returns the structure of the source of the program: the text is not read.
func outlineOf(_ context.Context, program, path string, _ []byte) (sir.Program, error) {
	then := sir.Region{ID: "p:multiply/if1.then", Kind: sir.Branch, Form: "then", Line: 4, Code: &sir.Code{EndLine: 5}}
	choice := sir.Region{ID: "p:multiply/if1", Kind: sir.If, Line: 3, Code: &sir.Code{EndLine: 5}, Regions: []sir.Region{then}}
	block := sir.Region{ID: "p:multiply/scope1", Kind: sir.Scope, File: path, Line: 4, Code: &sir.Code{EndLine: 8}}
	kept := sir.Region{ID: "p:multiply/spawn1", Kind: sir.Spawn, File: path, Line: 4, Code: &sir.Code{EndLine: 4}}
	unit := sir.Region{ID: "p:multiply", Name: "multiply", Symbol: "multiply", Kind: sir.Function, Line: 2, Extent: &sir.Extent{EndLine: 9}, Regions: []sir.Region{choice, block, kept}}
	return sir.Program{Path: program, Regions: []sir.Region{unit}}, nil
}

// TestBranches measures a branch, which the source that the program names describes. The source is read with the rights
// of the caller, and must be older than the program.
func TestBranches(t *testing.T) {
	h := newHarness(t)
	h.source = filepath.Join(t.TempDir(), "multiply.c")
	h.node.Add(1, []string{"mmul"}, 1)
	a := h.attach("mmul", 1)
	ask := func(who deliver.User, branch string) string {
		doc, err := mir.Decoder{Limits: mir.RequestLimits()}.DecodeRequest([]byte(`<instrreq activated="true" flush="true"><codeRegion from="f.1a2b/` + branch + `"/><metric name="COUNT"/></instrreq>`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = a.Answer(probes.WithCaller(t.Context(), "me", who), doc, probes.Options{}); err != nil {
			return err.Error()
		}
		return "measured"
	}
	me := deliver.User{UID: os.Geteuid()}
	expect := func(who deliver.User, branch, want string) {
		t.Helper()
		if got := ask(who, branch); !strings.Contains(got, want) {
			t.Errorf("%s is refused: %s, want %s", branch, got, want)
		}
	}
	expect(me, "if1.then", "no such file")
	if err := os.WriteFile(h.source, []byte("int multiply;"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(me, "if1.then", "was changed after the program was built")
	if err := os.Chtimes(h.source, built, built); err != nil {
		t.Fatal(err)
	}
	expect(me, "if1.then", "measured")
	moved := filepath.Join(t.TempDir(), "multiply.c")
	if err := os.Rename(h.source, moved); err != nil {
		t.Fatal(err)
	}
	expect(me, "if1.then", "if the file is at another place, name it as a resource of a sirreq")
	name := func(file string) {
		t.Helper()
		if err := h.registry.NameSources("mmul", []string{file}); err != nil {
			t.Fatal(err)
		}
	}
	name(filepath.Join(t.TempDir(), "divide.c"))
	expect(me, "if1.then", "name it as a resource")
	name(moved)
	expect(me, "if1.then", "measured")
	expect(deliver.User{UID: -1}, "if1.then", "does not tell which user's rights are to be used")
	if err := os.Chtimes(moved, time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	expect(me, "if1.then", "if it is as it was then, give it an earlier time")
	name(filepath.Join(t.TempDir(), "multiply.c"))
	expect(me, "if1.then", "several named files may be meant")
	if err := os.Rename(moved, h.source); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(h.source, built, built); err != nil {
		t.Fatal(err)
	}
	original := h.source
	h.source = "src/multiply.c" // as with -ffile-prefix-map
	expect(me, "if1.then", "is the name of a file in another folder")
	h.source = original
	expect(me, "if2.then", "no function multiply at line 2 with a region if2.then")
	expect(me, "scope1", "its code is not its own; this line in it can be counted: multiply.c:5")
	expect(me, "spawn1", "a region of the type spawn is not found in machine code; no line in it can be counted")
	expect(deliver.User{UID: -1}, "if1.then", "does not tell which user's rights are to be used")
}

// TestBranchesOutliveTheGateway checks that the next gateway finds a branch again whose source a request has named.
func TestBranchesOutliveTheGateway(t *testing.T) {
	h := newPersistentHarness(t)
	h.source = "src/multiply.c"
	file := filepath.Join(t.TempDir(), "multiply.c")
	if err := os.WriteFile(file, []byte("int multiply;"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, built, built); err != nil {
		t.Fatal(err)
	}
	p := h.node.Add(812, []string{"bin/mmul"}, 812)
	a := h.attach("mmul", 812)
	if err := h.registry.NameSources("mmul", []string{file}); err != nil {
		t.Fatal(err)
	}
	me := probes.WithCaller(t.Context(), "me", deliver.User{UID: os.Geteuid()})
	ask := `<instrreq activated="true" flush="true"><codeRegion from="f.1a2b/if1.then"/><metric name="COUNT"/></instrreq>`
	doc, err := mir.Decoder{Limits: mir.RequestLimits()}.DecodeRequest([]byte(ask))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Answer(me, doc, probes.Options{}); err != nil {
		t.Fatal(err)
	}
	execute(p, 812)
	h = h.kill()
	execute(p, 812)
	h.want(h.app("mmul"), valueIt, `<measurement nodeId="n_1" processId="p_1" threadId="t_1" value="2"/>`)
}
