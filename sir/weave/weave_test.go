package weave_test

import (
	"bytes"
	"errors"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"

	"mirador/sir"
	"mirador/sir/source"
	"mirador/sir/weave"
)

// weaving reads a source.
func weaving(t testing.TB, path, text string) (*weave.Weaving, []string) {
	t.Helper()
	p, err := source.Read(t.Context(), "p", []source.Resource{{In: path, Path: path, Text: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := weave.New("0123456789abcdef", &p, []weave.Source{{Path: path, Language: p.Resources[0].Language, Text: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for r := range p.All() {
		ids = append(ids, r.ID)
	}
	return w, ids
}

// TestText checks what is written into sources: the lines of the source keep their numbers and what they had.
func TestText(t *testing.T) {
	for _, c := range []struct{ id, text, want string }{
		{"p:f/loop1", "int f(void)\n{\n\tfor (;;)\n\t\tg();\n}\n", "int f(void)\n{\n\t{ R(1) for (;;)\n\t\tg(); }\n}\n"},
		{"p:f/loop1/body", "int f(void)\n{\n\tfor (;;)\n\t\tg();\n}\n", "int f(void)\n{\n\tfor (;;)\n\t\t{ R(1) g(); }\n}\n"},
		{"p:f", "int f(void) { return 1; }", "int f(void) { R(1) return 1; }"},
		{"p:f/call.g", "int f(void) { (void)g(1); }", "int f(void) { (void)__extension__ ({ R(1) g(1); }); }"},
		{"p:f/loop1/call.g", "int f(int a) { for (a = 0; g(a); a++) h(); }", "int f(int a) { for (a = 0; __extension__ ({ R(1) g(a); }); a++) h(); }"},
		{"p:f/call.g", "int f(int a) { return a & g(1) == 2; }", "int f(int a) { return a & __extension__ ({ R(1) g(1); }) == 2; }"},
		{"p:f/call.g", "int f(int a) { if (a) g(1); else h(); }", "int f(int a) { if (a) { R(1) g(1); } else h(); }"},
		{"p:f/if1", "int f(int a) { here: if (a) /* ; */ a = '}'; }", "int f(int a) { here: { R(1) if (a) /* ; */ a = '}'; } }"},
		{"p:f/scope1", "int f(int n) { switch (n) { case 1: { if (n) break; g(); } } }", "int f(int n) { switch (n) { case 1: { R(1) { if (n) break; g(); } } } }"},
		{"p:f/scope1", "int f(void) { in: { g(); goto in; } }", "int f(void) { in: { R(1) { g(); goto in; } } }"},
		{"p:f/openmp1", "int f(void) {\n  g();\n  #pragma omp parallel \\\n  for\n  for (;;) g();\n}", "int f(void) {\n  g();\n{ R(1)\n#line 3\n  #pragma omp parallel \\\n  for\n  for (;;) g(); }\n}"},
		{"p:f/openmp1", "int f(void) {\n#pragma omp barrier\ng();\n}", "int f(void) {\n{ R(1)\n#line 2\n#pragma omp barrier\n} g();\n}"},
		{"p:f", "\uFEFFint f(void) { g(); }", "\uFEFF|int f(void) { R(1) g(); }"},
	} {
		w, ids := weaving(t, "p.c", c.text)
		texts, err := w.Weave([]string{c.id})
		if err != nil {
			t.Errorf("%q: %v (regions are %v)", c.text, err, ids)
			continue
		}
		before, _, _ := bytes.Cut(texts[0].Text, []byte("#ifndef"))
		_, after, _ := strings.Cut(string(texts[0].Text), "\n#line 1\n")
		got := strings.ReplaceAll(after, "MIRADOR_REGION(01234567_1_1)", "R(1)")
		if len(before) > 0 {
			got = string(before) + "|" + got
		}
		if got != c.want {
			t.Errorf("%q is woven as\n%s\nwant\n%s", c.text, got, c.want)
		}
	}
}

// TestRefusals checks that what cannot be woven is refused with the reason.
func TestRefusals(t *testing.T) {
	for _, c := range []struct{ path, id, text, why string }{
		{"p.c", "p:f/loop1", "int f(int n) { if (n) goto in; for (;;) { in: g(); } }", "a goto leads into it, at line 1"},
		{"p.c", "p:f/loop1", "int f(int n) { void *in = &&l; for (;;) { l: g(); } }", "a goto leads into it"},
		{"p.c", "p:f/loop1", "int f(int n) { switch (n) { case 1: while (n) { case 2: g(); } } }", "a label of a switch"},
		{"p.c", "p:f/scope1", "int f(int n) { if (n) goto in; { g(); in: h(); } }", "a goto leads into it"},
		{"p.c", "p:f/switch1.case1", "int f(int n) { switch (n) { case 1: g(); } }", "behind a label"},
		{"p.c", "p:f/loop1", "int f(int n) { while (n) {\n#if A\n g(); }\n#else\n h(); }\n#endif\n }", "conditional of the preprocessor"},
		{"p.c", "p:f/if1", "int f(int n) { if (n) { g(); }\n#if A\n else if (n > 1) { h(); }\n#endif\n }", "an else follows"},
		{"p.c", "p:f/call.AT", "#define AT(n) list[n]\nint f(void) { AT(1) = 2; }", "AT is a macro"},
		{"p.c", "p:f/call.at", "int f(void) { at(1) = 2; }", "more than a value"},
		{"p.c", "p:f/call.at", "int *f(void) { return &at(1); }", "more than a value"},
		{"p.c", "p:f/call.setjmp", "int f(void) { if (setjmp(b)) g(); }", "may return twice"},
		{"p.c", "p:f/loop1", "int f(void) {\n#pragma omp for\nfor (i = 0; i < 3; i++) g();\n}", "needs its statement unchanged"},
		{"p.c", "p:f/loop1/loop1", "int f(void) {\n#pragma omp for collapse(2)\nfor (i = 0; i < 3; i++) for (j = 0; j < 3; j++) g();\n}", "makes one loop"},
		{"p.cc", "p:f/call.g", "int f(int n) { return g(n); }", "temporary objects"},
		{"p.cc", "p:f", "constexpr int f(int n) { return n; }", "is constexpr"},
		{"p.cc", "p:f", "void f() try { g(); } catch (...) { h(); }", "is a try block"},
		{"p.cc", "p:f/allocation1", "int *f() { return new int; }", "is an expression"},
	} {
		w, ids := weaving(t, c.path, c.text)
		id := c.id
		if !w.Has(id) {
			if i := slices.IndexFunc(ids, func(known string) bool { return strings.HasSuffix(known, c.id) }); i >= 0 {
				id = ids[i]
			} else {
				t.Errorf("%q has the regions %v", c.text, ids)
				continue
			}
		}
		var no *weave.Refusal
		if err := w.Check(id); !errors.As(err, &no) || no.ID != id || !strings.Contains(no.Why, c.why) {
			t.Errorf("%q: %v, want %q", c.text, err, c.why)
		}
	}
	if _, err := weave.New("0123456789abcdef", &sir.Program{}, []weave.Source{{Path: "p.pli", Language: "pli"}}); err == nil || !strings.Contains(err.Error(), "sources in pli cannot be woven") {
		t.Errorf("a source in PL/I: %v", err)
	}
	w, _ := weaving(t, "p.c", "int f(void) { g(); }")
	texts, err := w.Weave([]string{"p:f", "p:f"})
	if err != nil || w.Check("p:none") == nil {
		t.Errorf("%v, and a region that does not exist is woven", err)
	}
	p, err := source.Read(t.Context(), "p", []source.Resource{{In: "p.c", Path: "p.c", Text: texts[0].Text}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := weave.New("0123456789abcdef", &p, []weave.Source{{Path: "p.c", Language: "c", Text: texts[0].Text}}); err == nil || !strings.Contains(err.Error(), "has woven regions already") {
		t.Errorf("a woven source: %v", err)
	}
}

// FuzzWeave checks that any text can be woven: what is written contains the lines of the text, and ids add no
// characters of their own.
func FuzzWeave(f *testing.F) {
	for _, text := range []string{
		"int f(void)\n{ for (;;) { g(\"}\"); } }\n", "#if 0\nint f(\n#else\nint f(void) {\n#endif\n g(); }\n", "int \u00fc$\\x(void) { L'x'; R\"a(b)a\"; 1'0.e+; }", "#", "/*", "'", "R\"(", "f(){}\\",
		"class p { p() { super(); }\n int f() { a: for (;;) { switch (n) { case 1 -> g(); default -> { break a; } } }\n try { return 1; } finally { x -> { h(); }; } } }", "package p\nfunc f() (int, error) {\nx: for { switch { case g(): break x; default: return g(); } }\n; return 1, nil }",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, path := range []string{"p.c", "p.cc", "p.go", "p.java"} {
			if strings.Contains(text, "MIRADOR") {
				return
			}
			w, ids := weaving(t, path, text)
			good := map[string]bool{}
			for _, id := range ids {
				if w.Check(id) == nil {
					good[id] = true
				}
			}
			texts, err := w.Weave(slices.Sorted(maps.Keys(good)))
			if err != nil {
				t.Fatalf("%q: regions can be woven one by one, not together: %v", text, err)
			}
			if parses(text) && path == "p.go" && !parses(string(texts[0].Text)) {
				t.Fatalf("%q is woven as %q", text, texts[0].Text)
			}
			left := texts[0].Text
			for i := range len(text) {
				at := bytes.IndexByte(left, text[i])
				if at < 0 {
					t.Fatalf("%q lacks byte %d: %q", texts[0].Text, i, text)
				}
				left = left[at+1:]
			}
		}
	})
}

// parses reports whether a text is a source in Go.
func parses(text string) bool {
	_, err := parser.ParseFile(token.NewFileSet(), "", text, 0)
	return err == nil
}

// TestLongSource checks that a source of more words than the memory has room for is refused.
func TestLongSource(t *testing.T) {
	text := "int f(void) {" + strings.Repeat(";", 4_100_000) + "}"
	p := sir.Program{Regions: []sir.Region{{ID: "p:f", Kind: sir.Function, File: "p.c", Line: 1, Extent: &sir.Extent{Column: 1, EndLine: 1, EndColumn: len(text)}}}}
	w, err := weave.New("0123456789abcdef", &p, []weave.Source{{Path: "p.c", Language: "c", Text: []byte(text)}})
	if err != nil || w.Memory() < int64(len(text)) {
		t.Fatal(w, err)
	}
	if err := w.Check("p:f"); err == nil || !strings.Contains(err.Error(), "words and signs") {
		t.Errorf("a source of 4,100,000 statements: %v", err)
	}
}
