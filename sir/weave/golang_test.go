package weave_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mirador/sir/weave"
)

// TestGoText checks what is written into sources in Go: lines keep their numbers, and each way out of a region ends it.
func TestGoText(t *testing.T) {
	for _, c := range []struct{ id, text, want string }{
		{"p:p.f", "func f() {\n\tg()\n}", "func f() { D on;\n\tg()\n}"},
		{"p:p.f", "func f() {}", "func f() { D on;}"},
		{"p:p.f/block1", "func f() {\n\tfor {\n\t\tbreak\n\t}\n}", "func f() { D\n\ton; for {\n\t\tbreak\n\t}; off\n}"},
		{"p:p.f/loop1", "func f() {\n\tfor {\n\t\tg()\n\t}\n}", "func f() { D\n\ton; for {\n\t\tg()\n\t}\n}"},
		{"p:p.f/loop1/body", "func f(n int) {\n\tfor range n {\n\t\tif n > 1 { continue }\n\t\tg() // called\n\t}\n}", "func f(n int) { D\n\tfor range n { on;\n\t\tif n > 1 { off; continue }\n\t\tg(); off // called\n\t}\n}"},
		{"p:p.f/loop1/body", "func f() {\n\tfor {\n\t}\n}", "func f() { D\n\tfor { on; off;\n\t}\n}"},
		{"p:p.f/loop1/loop1", "func f() {\nouter:\n\tfor {\n\tinner:\n\t\tfor {\n\t\t\tif g() { break inner }\n\t\t\tcontinue outer\n\t\t}\n\t}\n}", "func f() { D\nouter:\n\tfor {\n\ton; inner:\n\t\tfor {\n\t\t\tif g() { break inner }\n\t\t\toff; continue outer\n\t\t}; off\n\t}\n}"},
		{"p:p.f/if1.then", "func f(n int) int {\n\tif n > 1 {\n\t\treturn n\n\t}\n\treturn g()\n}", "func f(n int) int { D\n\tif n > 1 { on;\n\t\toff; return n\n\t}\n\treturn g()\n}"},
		{"p:p.f/return1", "func f() int { return 1 }", "func f() int { D on; off; return 1 }"},
		{"p:p.f/return1", "func f() int { return g() }", "func f() int { D on; return g() }"},
		{"p:p.f/switch1.case1", "func f(n int) {\n\tswitch n {\n\tcase 1:\n\t\tg()\n\t\tfallthrough\n\tdefault:\n\t}\n}", "func f(n int) { D\n\tswitch n {\n\tcase 1: on;\n\t\tg()\n\t\toff; fallthrough\n\tdefault:\n\t}\n}"},
		{"p:p.f/switch1", "func f(n int) {\n\tswitch n {\n\tcase 1:\n\t\tbreak\n\t}\n}", "func f(n int) { D\n\ton; switch n {\n\tcase 1:\n\t\tbreak\n\t}; off\n}"},
		{"p:p.f/scope1", "func f(n int) {\n\t{\n\t\tif n > 1 { return }\n\t\tg()\n\t}\n}", "func f(n int) { D\n\t{ on;\n\t\tif n > 1 { off; return }\n\t\tg(); off\n\t}\n}"},
		{"p:p.f/call.*", "func f() { g(); h() }", "func f() { D on; g(); off; h() }"},
		{"p:p.f/call.*", "func f() { a, b := g(); h(a, b) }", "func f() { D on; a, b := g(); off; h(a, b) }"},
		{"p:p.f/call.*", "func f() { if a := g(); a > 0 { h() } }", "func f() { D if a := call(on(), g()); a > 0 { h() } }"},
		{"p:p.f/throw1", "func f() { panic(1) }", "func f() { D on; panic(1) }"},
		{"p:p.f.func1/block1", "func f() {\n\tgo func() {\n\t\tfor g() { return }\n\t}()\n}", "func f() {\n\tgo func() { D\n\t\ton; for g() { off; return }; off\n\t}()\n}"},
		{"p:p.f[...]", "func f[T any](T) { g() }", "func f[T any](T) { D on; g() }"},
		{"p:p.f/loop1", "func f() {\n\tfor g() {\n\t\tgoto end\n\t}\nend:\n}", "func f() { D\n\ton; for g() {\n\t\toff; goto end\n\t}; off\nend:\n}"},
	} {
		text := "package p\n\n" + c.text + "\n"
		w, ids := weaving(t, "p.go", text)
		files, err := w.Weave([]string{c.id})
		if err != nil {
			t.Errorf("%q: %v (regions are %v)", c.text, err, ids)
			continue
		}
		got, _, _ := strings.Cut(strings.TrimPrefix(string(files[0].Text), "package p\n\n"), "\n\n// The functions below")
		for _, r := range []struct{ pattern, short string }{
			{` var mirador_open .*?\(&mirador_open\);`, " D"},
			{`mirador_(on|off)\w+\(&mirador_open\[0\]\)(;?)`, "$1$2"},
			{`mirador_call\w+\(on`, "call(on()"},
		} {
			got = regexp.MustCompile(r.pattern).ReplaceAllString(got, r.short)
		}
		if strings.TrimSpace(got) != c.want {
			t.Errorf("%q is woven as\n%s\nwant\n%s", c.text, got, c.want)
		}
	}
}

// TestGoRefusals checks that what cannot be woven in Go is refused with the reason.
func TestGoRefusals(t *testing.T) {
	for _, c := range []struct{ id, text, why string }{
		{"p:p.f/loop1", "func f(n int) {\nagain:\n\tfor range n {\n\t\tgoto again\n\t}\n}", "a goto leads to its label again"},
		{"p:p.f/call.g", "func f() { go g() }", "is executed by another goroutine"},
		{"p:p.f/call.*~2", "func f() { h(g()) }", "are its values, perhaps several"},
		{"p:p.f/call.g", "func f() { if a, b := g(); a > b { h() } }", "a part of another statement"},
		{"p:p.f/call.g", "func f() { for g(); ; { h() } }", "a part of another statement"},
		{"p:p.f/call.unsafe.Pointer", "import \"unsafe\"\nfunc f(p *int) { h(1, unsafe.Pointer(p)) }", "no call of a function"},
		{"p:p.f/call.T", "func f() { const a = T(1); h(a) }", "is a constant"},
		{"p:p.f", "//go:nosplit\nfunc f() { g() }", "is marked with //go:nosplit"},
		{"p:p.f", "func f()", "no function with a body"},
		{"p:p.f", "func f() { g() }\n)", "errors of syntax"},
	} {
		w, ids := weaving(t, "p.go", "package p\n"+c.text)
		id := c.id
		if !w.Has(id) {
			i := slices.IndexFunc(ids, func(known string) bool { return strings.Contains(known, "/call.") })
			if i < 0 {
				t.Errorf("%q has the regions %v", c.text, ids)
				continue
			}
			id = ids[i]
		}
		var no *weave.Refusal
		if err := w.Check(id); !errors.As(err, &no) || !strings.Contains(no.Why, c.why) {
			t.Errorf("%q: %v, want %q", c.text, err, c.why)
		}
	}
}
