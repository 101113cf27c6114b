package measure

import (
	"slices"
	"testing"
)

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		`./shop 1 2`:             {"./shop", "1", "2"},
		` a  'b c' "d 'e'" \ f `: {"a", "b c", "d 'e'", " f"},
		`a '' x"y"z '|'`:         {"a", "", "xyz", "|"},
	} {
		if got, err := words(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "  ", "a | b", "a 'b", `a\`, "a > b", "$HOME/x", "a `b`"} {
		if got, err := words(text); err == nil {
			t.Errorf("%s: %q", text, got)
		}
	}
}
