//go:build linux && amd64

package library

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// doubled returns the mangled name of a function template whose argument's name doubles n
// times.
func doubled(n int) string {
	var b strings.Builder
	b.WriteString("_Z1fI1AIiE")
	for i := range n {
		last := strings.ToUpper(strconv.FormatInt(int64(2*i+1), 36))
		fmt.Fprintf(&b, "1%cIS%s_S%s_E", 'B'+i%20, last, last)
	}
	return b.String() + "Evv"
}

// TestNamesMayNotMultiply looks for a function among symbols of a few hundred bytes whose
// names in the source would have gigabytes.
func TestNamesMayNotMultiply(t *testing.T) {
	const plain = "_Z4findi"
	functions := map[string][]symbol{plain: {{}}}
	for n := range 24 {
		functions[doubled(n)] = []symbol{{}}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	names := mangledNames([]module{{image: &image{functions: functions}}}, "find")
	runtime.ReadMemStats(&after)
	if !slices.Equal(names, []string{plain}) {
		t.Errorf("found %q", names)
	}
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 20 {
		t.Errorf("the names took %d MB", took)
	}
}
