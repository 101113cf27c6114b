package source

import (
	"slices"
	"strings"
	"testing"

	"mirador/sir"
)

// TestScopes checks which braces are regions of their own: those that are no part of another statement. Loops that are
// executed once keep their ids.
func TestScopes(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"a.c", "int f(int n) { { g(); { h(); } } while (n) { { n--; } } do { g(); } while (0); { } }",
			"f/scope1 f/scope2 f/loop1/scope1 f/block1 f/scope3"},
		{"a.c", "int f(int n) { switch (n) { case 1: { g(); } break; default: { h(); } } in: { g(); } if (n) { g(); } else { h(); } }", "f/scope1 f/scope2 f/scope3"},
		{"a.c", "int f(int n) {\n#ifdef A\n{ g(); }\n#endif\n#pragma omp critical\n{ g(); }\nreturn ({ n++; n; });\n}", "f/scope1"},
		{"a.cc", "struct A { A() { { g(); } } }; namespace N { void f() { try { { g(); } } catch (...) { h(); } auto l = [] { { g(); } }; } }",
			"A::A/scope1 N::f/scope1 N::f/lambda1/scope1"},
		{"A.java", "class A { { g(); } static { { g(); } } A() { { g(); } } void f() { out: { break out; } synchronized (this) { { g(); } } switch (n) { case 1 -> { g(); } default -> { { h(); } } } } }",
			"A.<clinit>()/scope1 A.<init>()/scope1 A.f()/scope1 A.f()/scope2 A.f()/scope3"},
		{"a.go", "package a\nfunc f(n int) { { g() }\nL: { h() }\nswitch n { case 1: { g() } }\nselect { default: { g() } }\nfor { { g() } }\nfunc() { { h() } }() }",
			"a.f/scope1 a.f/scope2 a.f/scope3 a.f/scope4 a.f/loop1/scope1 a.f.func1/scope1"},
	} {
		p := read(t, "a", Resource{In: c.file, Path: c.file, Text: []byte(c.text)})
		var found []string
		for r := range p.All() {
			if r.Kind == sir.Scope || r.Kind == sir.Block {
				found = append(found, strings.TrimPrefix(r.ID, "a:"))
			}
		}
		if want := strings.Fields(c.want); !slices.Equal(found, want) {
			t.Errorf("%s has %v, want %v", c.text, found, want)
		}
	}
}
