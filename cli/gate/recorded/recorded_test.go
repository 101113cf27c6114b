package recorded

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchproc"

	"mirador/cli/gate/request"
)

func parsed(t *testing.T, inside string) *request.File {
	t.Helper()
	f, err := request.Parse(fmt.Appendf(nil, "<g:gate xmlns:g=%q>%s</g:gate>", request.Namespace, inside))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const twoRequests = `<instrreq><codeRegion from="mmul:dot"/><metric name="COUNT" g:max="1"/></instrreq>
<instrreq><codeRegion from="mmul:dot"/><metric name="WC_TIME" g:max="1 s" g:of="p99"/></instrreq>`

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "values")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDocuments reads what a gateway has answered: the counts of two threads, and percentiles.
func TestDocuments(t *testing.T) {
	gate := parsed(t, twoRequests)
	v, err := Read([]string{"testdata/delivered.xml"}, gate)
	if err != nil || v.Benchmarks || v.Missing(gate, "head") != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(v.ByLimit); got != "[[4.904997e+06] [8.8e-05]]" {
		t.Error(got)
	}
	text, err := os.ReadFile("testdata/delivered.xml")
	if err != nil {
		t.Fatal(err)
	}
	twice, err := Read([]string{file(t, string(text)+"\n"+string(text))}, gate)
	if err != nil || len(twice.ByLimit[1]) != 2 {
		t.Errorf("two documents in a file: %+v, %v", twice, err)
	}
}

// TestWriteDocuments reads back what was written.
func TestWriteDocuments(t *testing.T) {
	gate := parsed(t, twoRequests+`<instrreq><metric name="SYSCALL_COUNT" g:max="1"/><metric name="SYSCALL_COUNT:read" g:max="1"/></instrreq>`)
	v := &Values{ByLimit: [][]float64{{1, 2}, {0.5, 0.25}, {7, 8}, {1e21, 0}}}
	var out bytes.Buffer
	if err := v.WriteDocuments(&out, gate); err != nil {
		t.Fatal(err)
	}
	got, err := Read([]string{file(t, out.String())}, gate)
	if err != nil || fmt.Sprint(got.ByLimit) != fmt.Sprint(v.ByLimit) {
		t.Errorf("%v, %v\n%s", got, err, &out)
	}
}

const goOutput = `goos: linux
pkg: example/shop
BenchmarkPrice/small-8   	1000000	      1052 ns/op	     128 B/op	       3 allocs/op
BenchmarkPrice/small-8   	1000000	      1050 ns/op	     128 B/op	       3 allocs/op
BenchmarkPrice/large-8   	   1000	   1052000 ns/op	     128 B/op	       3 allocs/op
PASS
`

func TestBenchmarks(t *testing.T) {
	gate := parsed(t, `<g:benchmark name="Price/small"><metric name="ns/op" g:max="2 us"/><metric name="allocs/op" g:exact="3"/></g:benchmark>`)
	v, err := Read([]string{file(t, goOutput)}, gate)
	if err != nil || !v.Benchmarks || fmt.Sprintf("%.6f", v.ByLimit) != "[[0.001052 0.001050] [3.000000 3.000000]]" {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestRefused checks that bad files are refused with a sentence that helps.
func TestRefused(t *testing.T) {
	documents := parsed(t, twoRequests)
	benchmarks := parsed(t, `<g:benchmark name="Price/small"><metric name="sec/op" g:max="2 us"/></g:benchmark>`)
	for _, test := range []struct {
		text string
		gate *request.File
		want string
	}{
		{"", documents, "no result of a benchmark"},
		{"hello", documents, "no result of a benchmark"},
		{"<snapshot/>", documents, "it is no measurement document"},
		{"<measurement", documents, "line 1"},
		{"<measurement value=\"1\"/>", documents, "0 probes, and the gate has 2"},
		{"BenchmarkPrice/small 1 NaN ns/op\n", benchmarks, "no number"},
		{"BenchmarkPrice/small 1 +Inf ns/op\n", benchmarks, "no number"},
		{"BenchmarkPrice/small 1 x ns/op\n", benchmarks, "parsing"},
		{strings.Repeat("BenchmarkPrice/small 1 5 ns/op\n", mostValues+1), benchmarks, "more than 200"},
	} {
		if _, err := Read([]string{file(t, test.text)}, test.gate); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.40q: %v, want %q", test.text, err, test.want)
		}
	}
	mixed := []string{file(t, goOutput), "testdata/delivered.xml"}
	if _, err := Read(mixed, benchmarks); err == nil || !strings.Contains(err.Error(), "same kind") {
		t.Error(err)
	}
	for _, path := range []string{"testdata/none", "/dev/null", t.TempDir()} {
		if _, err := Read([]string{path}, benchmarks); err == nil {
			t.Errorf("%s was read", path)
		}
	}
	v, err := Read([]string{file(t, "BenchmarkOther 1 5 ns/op\n")}, benchmarks)
	if err != nil || !strings.Contains(fmt.Sprint(v.Missing(benchmarks, "head")), "no sec/op of the benchmark Price/small") {
		t.Error(err, v.Missing(benchmarks, "head"))
	}
}

// TestWriteBenchmarks reads results with the parser of benchstat, which tells the sides apart by
// their configuration.
func TestWriteBenchmarks(t *testing.T) {
	var out bytes.Buffer
	err := WriteBenchmarks(&out, "gate.xml", []Sampled{
		{Region: "shop:price", Metric: "WC_TIME", Of: "p50", Unit: "ms", Base: []float64{0.5, 0.25}, Head: []float64{0.125}},
		{Metric: "SYSCALL_COUNT", Unit: "1", Head: []float64{7}},
	})
	if err != nil {
		t.Fatal(err)
	}
	reader := benchfmt.NewReader(&out, "out")
	parser := benchproc.ProjectionParser{}
	projection, err := parser.Parse("side,.fullname", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for reader.Scan() {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			t.Fatal(reader.Result())
		}
		got = append(got, fmt.Sprint(projection.Project(result), " ", result.Values[0].Value, " ", result.Values[0].Unit))
	}
	want := []string{
		"side:base .fullname:WC_TIME/region=shop:price/of=p50 0.0005 sec/op",
		"side:base .fullname:WC_TIME/region=shop:price/of=p50 0.00025 sec/op",
		"side:head .fullname:WC_TIME/region=shop:price/of=p50 0.000125 sec/op",
		"side:head .fullname:SYSCALL_COUNT 7 events",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
