package probes

import (
	"slices"
	"strings"
	"testing"

	"mirador/omis"
)

// TestArgumentsAreShortened checks that few arguments are kept, and many are cut off.
func TestArgumentsAreShortened(t *testing.T) {
	long := strings.Repeat("ä", mostArgv)
	for _, c := range []struct{ args, want []string }{
		{[]string{"a", "", "b"}, []string{"a", "", "b"}},
		{nil, nil},
		{[]string{"a", long, "b"}, []string{"a", long[:mostArgv-2] + "…"}},
	} {
		var args []omis.Value
		for _, arg := range c.args {
			args = append(args, omis.String(arg))
		}
		if got := shortened(args); !slices.Equal(got, c.want) {
			t.Errorf("%d arguments, want %d: %.40q", len(got), len(c.want), got)
		}
	}
	empty := make([]omis.Value, 10*mostArgv)
	for i := range empty {
		empty[i] = omis.String("")
	}
	if n := len(shortened(empty)); n > mostArgv+1 {
		t.Errorf("%d empty arguments are kept", n)
	}
}
