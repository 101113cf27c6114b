package sir_test

import (
	"testing"

	"mirador/sir"
)

// TestGoMarks checks that the names of marks tell what they mark, and that other names are none.
func TestGoMarks(t *testing.T) {
	const region = "lambda:p:example%2ecom/x.(*T[...]).f_ü.func1/loop1~2"
	begins, ends := sir.GoMarks("0123abcd", region)
	for name, want := range map[string][3]string{
		"example.com/x." + begins: {"begin", "0123abcd", region},
		"main." + ends:            {"end", "0123abcd", region},
		"main.mirador_on_0_1_1":   {},
		"mirador_begin_0":         {},
		"mirador_begin_0_a_3":     {},
		"mirador_end_0_a_zz":      {},
		"":                        {},
	} {
		what, weaving, of := sir.GoMark(name)
		if got := [3]string{what, weaving, of}; got != want {
			t.Errorf("%s marks %q, want %q", name, got, want)
		}
	}
}
