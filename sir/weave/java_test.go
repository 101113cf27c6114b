package weave_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"mirador/sir/weave"
)

// TestJavaText checks what is written into sources in Java.
func TestJavaText(t *testing.T) {
	for _, c := range []struct{ id, text, want string }{
		{"p:P.f(int)", "class P { int f(int n) { return n; } }", "class P { int f(int n) { B return n; E } }"},
		{"p:P.<init>(int)", "class P { P(int n) { super(g(() -> { h(); })); x = n; } }", "class P { P(int n) { super(g(() -> { h(); })); B x = n; E } }"},
		{"p:P.<init>(int)", "class P { P(int n) { check(n); this(); } }", "class P { P(int n) { check(n); this(); B E } }"},
		{"p:P.f()", "class P { void f() {} }", "class P { void f() { B E } }"},
		{"p:P.f()/loop1", "class P { void f() {\n a: b: for (;;) continue a;\n} }", "class P { void f() {\n { B a: b: for (;;) continue a; E }\n} }"},
		{"p:P.f()/loop1", "class P { void f() { switch (n) { case A: for (;;) g(); } } }", "class P { void f() { switch (n) { case A: { B for (;;) g(); E } } } }"},
		{"p:P.f()/loop1/body", "class P { void f() { for (;;) { g(\"\"\"\n \" }\n\"\"\"); } } }", "class P { void f() { for (;;) { B { g(\"\"\"\n \" }\n\"\"\"); } E } } }"},
		{"p:P.f()/scope1", "class P { void f() { a: { if (n) break a; g(); } } }", "class P { void f() { { B a: { if (n) break a; g(); } E } } }"},
		{"p:P.f()/call.g", "class P { void f() { if (a) g(); else h(); } }", "class P { void f() { if (a) { B g(); E } else h(); } }"},
		{"p:P.f()/try1.catch1", "class P { void f() { try { g(); } catch (E e) { throw e; } finally { h(); } } }", "class P { void f() { try { g(); } catch (E e) { B throw e; E } finally { h(); } } }"},
		{"p:P.f()/try1.finally", "class P { void f() { try { g(); } finally { h(); } } }", "class P { void f() { try { g(); } finally { B h(); E } } }"},
		{"p:P.f()/lambda1", "class P { void f() { g(x -> { return x; }); } }", "class P { void f() { g(x -> { B return x; E }); } }"},
		{"p:P.f(Object)/if1", "class P { void f(Object o) { if (o instanceof String) g(); } }", "class P { void f(Object o) { { B if (o instanceof String) g(); E } } }"},
	} {
		w, ids := weaving(t, "p/P.java", c.text)
		files, err := w.Weave([]string{c.id})
		if err != nil {
			t.Errorf("%q: %v (regions are %v)", c.text, err, ids)
			continue
		}
		got := regexp.MustCompile(`if \(PMirador\.on\) PMirador\.miradorb\w+\(\); try \{`).ReplaceAllString(string(files[0].Text), "B")
		got = regexp.MustCompile(`\} finally \{ if \(PMirador\.on\) PMirador\.miradore\w+\(\); \}`).ReplaceAllString(got, "E")
		if got != c.want {
			t.Errorf("%q is woven as\n%s\nwant\n%s", c.text, got, c.want)
		}
		if beside := string(files[1].Text); files[1].Suffix != "Mirador.java" || strings.Count(beside, "static native void mirador") != 2 {
			t.Errorf("beside the source is %s", beside)
		}
	}
}

// TestJavaRefusals checks that what cannot be woven in Java is refused with the reason.
func TestJavaRefusals(t *testing.T) {
	for _, c := range []struct{ id, text, why string }{
		{"p:P.f()/call.g", "class P { int f() { return g(); } }", "within an expression"},
		{"p:P.f()/lambda1/call.g", "class P { void f() { h(() -> g()); } }", "within an expression"},
		{"p:P.f()/switch1", "class P { int f() { return switch (n) { default -> 1; }; } }", "its value is used"},
		{"p:P.f()/switch1.case1", "class P { void f() { switch (n) { case 1: g(); } } }", "behind a label of a switch"},
		{"p:P.f()/lambda1", "class P { void f() { g(x -> x); } }", "write a block"},
		{"p:P.f(Object)/if1", "class P { void f(Object o) { if (!(o instanceof String s)) return; g(s); } }", "declares a variable"},
		{"p:P.f(Object)/loop1", "class P { void f(Object o) { while (!(o instanceof R(var s))) h(); g(s); } }", "declares a variable"},
		{"p:P.f(int)/if1", "class P { void f(int n) { final int x; if (n > 1) { x = n; throw g(x); } x = 2; } }", "the final variable x"},
		{"p:P.f(int)/throw1", "class P { void f(int n) { final int x; if (n > 1) { x = n; throw g(x); } x = 2; } }", "the final variable x"},
		{"p:P.<init>()/call.<init>", "class P { P() { this(1); } }", "another constructor"},
		{"p:P.f()/allocation1", "class P { void f() { new P(); } }", "is an expression"},
	} {
		w, ids := weaving(t, "P.java", c.text)
		if !w.Has(c.id) {
			t.Errorf("%q has the regions %v", c.text, ids)
			continue
		}
		var no *weave.Refusal
		if err := w.Check(c.id); !errors.As(err, &no) || no.ID != c.id || !strings.Contains(no.Why, c.why) {
			t.Errorf("%q: %v, want %q", c.text, err, c.why)
		}
	}
}
