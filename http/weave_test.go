package gateway

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mirador/sir"
	"mirador/sir/source"
)

// TestWeave checks which files a sirreq may have written, and who may send it.
func TestWeave(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.c", "b.c", "a.h"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("int x;"), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	b := one()
	s := newTestServer(b)
	s.resources = []string{dir}
	s.sources = func(_ context.Context, program string, list []source.Resource) (sir.Program, error) {
		p := sir.Program{Path: program}
		for _, r := range list {
			p.Resources = append(p.Resources, sir.Resource{In: r.In, Out: r.Out, Language: "c"})
		}
		return p, nil
	}
	resource := func(in, out string) string {
		if out != "" {
			out = `" out="file://` + out
		}
		return `<resource in="file://` + filepath.Join(dir, in) + out + `"/>`
	}
	for request, want := range map[string]string{
		resource("a.c", filepath.Join(dir, "b.c")) + resource("b.c", "/woven/b.c"): "b.c is another resource of the request",
		resource("a.c", "/woven/a.c") + resource("b.c", "/woven/a.c"):              "two resources are to be written to file:///woven/a.c",
		`<resource in="file:///bin/one" out="file:///woven/one"/>`:                 "programs are measured as they run",
	} {
		w := serveAs(t, s, root, "POST", "/mir", "<sirreq>"+request+"</sirreq>")
		expect(t, w, w.Code, want)
		if w.Code < 400 || len(b.woven.Files) > 0 {
			t.Errorf("status %d: %+v", w.Code, b.woven)
		}
	}
	expect(t, serveAs(t, s, guest, "POST", "/mir", "<sirreq>"+resource("a.c", "")+"</sirreq>"), 200, `in="file://`)
	if b.named != nil {
		t.Errorf("a caller that only reads named the sources %q", b.named)
	}
	good := "<sirreq>" + resource("a.h", "") + resource("a.c", "/woven/a.c") + resource("b.c", filepath.Join(dir, "b.c")) + "</sirreq>"
	expect(t, serveAs(t, s, guest, "POST", "/mir", good), 403, "has the role read, this takes control")
	expect(t, serveAs(t, s, root, "POST", "/mir", good), 200, `out="file:///woven/a.c"`)
	if w := b.woven; len(w.Files) != 3 || !w.Files[0].Fixed || w.Outs[1] != "file:///woven/a.c" || w.Modes[1].Perm() != 0o640 || w.Files[2].Path != filepath.Join(dir, "b.c") {
		t.Errorf("what is woven into is %+v", w)
	}
	if want := []string{filepath.Join(dir, "a.h"), filepath.Join(dir, "a.c"), filepath.Join(dir, "b.c")}; !slices.Equal(b.named, want) {
		t.Errorf("the sources %q are named, want %q", b.named, want)
	}
}

// TestWovenPrograms checks that a program joins the application whose woven sources it was built from, if both
// belong to one user; and that an application may have no processes.
func TestWovenPrograms(t *testing.T) {
	b := one()
	b.owners = map[int]int{7: 1000, 8: 0, noPID: 1000}
	expect(t, ask(t, b, owner, "POST", "/apps", `{"name":"sources"}`), 201, `"empty"`, `"owner": 1000`)
	expect(t, ask(t, b, owner, "POST", "/apps", `{"name":"sources","follow":true}`), 400, "neither a program")
	b.wovenFor = "sources"
	expect(t, ask(t, b, owner, "POST", "/apps", `{"attach":[7],"alone":true}`), 201, `"name": "sources"`)
	expect(t, ask(t, b, root, "POST", "/apps", `{"attach":[8],"alone":true}`), 201, `"name": ""`) // of another user
	b.wovenFor = "mmul"
	expect(t, ask(t, b, other, "POST", "/apps", `{"attach":[7],"alone":true}`), 403)
}
