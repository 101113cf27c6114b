package engine

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"mirador/omis"
)

func resultOf(object omis.Token, spare int) omis.ObjectResult {
	return omis.ObjectResult{Objects: slices.Grow([]omis.Token{object}, spare), Values: []omis.Value{omis.Int(1)}}
}

// TestUnifiedWritesIntoNoList checks that unifying results does not write behind their lists of objects,
// which belong to the caller.
func TestUnifiedWritesIntoNoList(t *testing.T) {
	first := resultOf("t_1", 8)
	behind := first.Objects[:2]
	got := unified(omis.ServiceResult{first, resultOf("t_2", 0), resultOf("t_3", 0)})
	if len(got) != 1 || !slices.Equal(got[0].Objects, []omis.Token{"t_1", "t_2", "t_3"}) {
		t.Errorf("three equal results became %v", got)
	}
	if behind[1] != "" {
		t.Errorf("%q was written behind a list", behind[1])
	}
}

// TestUnifiedCopiesLittle checks that unifying ten thousand equal results does not copy the list of tokens
// ten thousand times.
func TestUnifiedCopiesLittle(t *testing.T) {
	const n = 10_000
	var results omis.ServiceResult
	for i := range n {
		results = append(results, resultOf(omis.Token(fmt.Sprint("pa_c_", i)), 0))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := unified(results)
	runtime.ReadMemStats(&after)
	if len(got) != 1 || len(got[0].Objects) != n {
		t.Fatalf("%d equal results became %d", n, len(got))
	}
	const enough = 10 << 20
	if copied := after.TotalAlloc - before.TotalAlloc; copied > enough {
		t.Errorf("%d bytes were allocated for a list of %d tokens", copied, n)
	}
}
