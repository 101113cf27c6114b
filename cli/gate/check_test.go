package gate

import (
	"fmt"
	"strings"
	"testing"

	"mirador/cli/gate/recorded"
	"mirador/cli/gate/request"
	"mirador/cli/gate/verdict"
)

// TestCheck judges recorded values of every kind, also without variance and with too few values.
func TestCheck(t *testing.T) {
	const inside = `<g:benchmark name="A"><metric name="sec/op" g:max="2 ms" g:max-change="5%"/><metric name="allocs/op" g:exact="true"/></g:benchmark>
<g:benchmark name="B"><metric name="sec/op" g:max-change="5%"/></g:benchmark>`
	file, err := request.Parse(fmt.Appendf(nil, "<g:gate xmlns:g=%q>%s</g:gate>", request.Namespace, inside))
	if err != nil {
		t.Fatal(err)
	}
	nine := func(v float64) []float64 { return []float64{v, v, v, v, v, v, v, v, v} }
	noisy := []float64{1, 1.01, 0.99, 1.02, 0.98, 1, 1.01, 0.99}
	slower := []float64{1.1, 1.11, 1.09, 1.12, 1.08, 1.1, 1.11, 1.09}
	wild := []float64{0.5, 2, 1, 4, 0.25, 8, 1, 0.1}
	for name, test := range map[string]struct {
		head, base [][]float64
		want       string
	}{
		"equal":     {[][]float64{nine(1), nine(1), {3}, noisy}, [][]float64{nil, nine(1), {3}, noisy}, "passed passed passed passed"},
		"slower":    {[][]float64{nine(3), nine(1.2), {4}, slower}, [][]float64{nil, nine(1), {3}, noisy}, "failed failed failed failed"},
		"too few":   {[][]float64{{1}, {1.2}, {3}, noisy[:2]}, [][]float64{nil, nine(1), {3}, noisy}, "inconclusive inconclusive passed inconclusive"},
		"noise":     {[][]float64{wild, wild, {3}, noisy}, [][]float64{nil, wild, {3}, wild}, "inconclusive inconclusive passed inconclusive"},
		"no time":   {[][]float64{nine(1), {0, 0, 0, 0, 0}, {3}, noisy}, [][]float64{nil, nine(1), {3}, noisy}, "passed inconclusive passed passed"},
		"by chance": {[][]float64{nine(1), {1.2, 1.2, 1.2, 1.2, 1.2}, {3}, noisy}, [][]float64{nil, {1, 1, 1, 1}, {3}, noisy}, "passed inconclusive passed passed"},
	} {
		rep, err := Check("gate.xml", file, &recorded.Values{ByLimit: test.head}, &recorded.Values{ByLimit: test.base})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rep.Results {
			got = append(got, string(r.Outcome))
			if r.Outcome != verdict.Passed && r.Reason == "" {
				t.Errorf("%s: no reason: %+v", name, r)
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %v, want %s", name, got, test.want)
		}
	}
	if _, err := Check("gate.xml", file, &recorded.Values{ByLimit: [][]float64{{1}, {1}, {3}, {1}}}, &recorded.Values{ByLimit: make([][]float64, 4)}); err == nil {
		t.Error("a base without values is accepted")
	}
}
