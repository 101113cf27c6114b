package request

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"mirador/mir"
)

func gate(inside string) []byte {
	return fmt.Appendf(nil, "<g:gate xmlns:g=%q xmlns:m=%q>\n%s\n</g:gate>", Namespace, mir.GatewayNamespace, inside)
}

func metric(attributes string) string {
	return "<instrreq><codeRegion from=\"shop:price\"/><metric " + attributes + "/></instrreq>"
}

func TestParse(t *testing.T) {
	f, err := Parse(gate(`
<instrreq m:clock="fast"><codeRegion from="shop:price"/>
  <metric name="COUNT" g:exact="990..1010"/>
  <metric name="WC_TIME" g:max="5 ms" g:of="p99"/>
  <metric name="WC_TIME" g:max-change="3%" g:max="80 us"/>
</instrreq>
<instrreq><metric name="SYSCALL_COUNT:read" g:exact="true"/><metric name="WAIT_TIME" g:max="1 s"/></instrreq>
<g:benchmark name="BenchmarkParse"><metric name="ns/op" g:max-change="3%"/><metric name="allocs/op" g:exact="2"/></g:benchmark>`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range f.Limits {
		text := fmt.Sprintf("%s %s %s of=%s", l.Kind, l.Region, l.Metric, l.Of)
		if l.Min != nil {
			text += fmt.Sprintf(" >=%g", *l.Min)
		}
		if l.Max != nil {
			text += fmt.Sprintf(" <=%g", *l.Max)
		}
		got = append(got, fmt.Sprintf("%s %v %g [%s]", text, l.Equal, l.Change, l.Text))
	}
	want := []string{
		"exact shop:price COUNT of= >=990 <=1010 false 0 [exact 990..1010]",
		"absolute shop:price WC_TIME of=p99 <=5 false 0 [max 5 ms, of p99]",
		"absolute shop:price WC_TIME of=p50 <=0.08 false 0 [max 80 us]",
		"relative shop:price WC_TIME of=p50 false 0.03 [max-change 3%]",
		"exact  SYSCALL_COUNT:read of= true 0 [exact true]",
		"absolute  WAIT_TIME of= <=1000 false 0 [max 1 s]",
		"relative  sec/op of= false 0.03 [max-change 3%]",
		"exact  allocs/op of= >=2 <=2 false 0 [exact 2]",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !f.NeedsBase() || !f.Limits[0].Fast || len(f.Of(Exact)) != 3 || f.Limits[6].Benchmark != "Parse" || len(f.Select(true).Limits) != 2 || f.Limits[5].Index != 1 || f.Limits[5].Request != 1 || f.Limits[1].Pos.Line != 5 {
		t.Errorf("%+v", f)
	}
}

// TestErrors checks that every mistake is refused with its position and a sentence that helps.
func TestErrors(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"<instrreq/>", "no metric"},
		{"", "has no limits"},
		{"<ctrlreq/>", "not allowed in a gate"},
		{metric(`name="COUNT"`), "has no limit"},
		{metric(`name="CUONT" g:max="1"`), "no metric"},
		{metric(`name="COUNT" g:max="1" g:min="2"`), "at least 2 and at most 1"},
		{metric(`name="COUNT" g:exact="1" g:max="2"`), "contradicts"},
		{metric(`name="COUNT" g:exact="true" g:max-change="2%"`), "allows no change"},
		{metric(`name="COUNT" g:exact="9..3"`), "begins above"},
		{metric(`name="COUNT" g:max="5 ms"`), "unit is not known"},
		{metric(`name="COUNT" g:max="1" g:of="p50"`), "only times of a region"},
		{metric(`name="WC_TIME" g:exact="true"`), "never exact"},
		{metric(`name="WC_TIME" g:max="5"`), `"5 ms"`},
		{metric(`name="WC_TIME" g:max="-5 ms"`), "a number was expected"},
		{metric(`name="WC_TIME" g:max="5 ms" g:of="median"`), "p99.9"},
		{metric(`name="WC_TIME" g:max-change="3"`), "such as 3%"},
		{metric(`name="WC_TIME" g:max-change="0.1%"`), "cannot be seen"},
		{metric(`name="WC_TIME" g:max-change="3%" g:of="p99"`), "absolute limit"},
		{metric(`name="COUNT" g:maximum="3"`), "no meaning"},
		{metric(`name="SYSCALL_COUNT" g:max="3"`), "what the probe itself does"},
		{`<instrreq><metric name="WC_TIME" g:max="1 ms"/></instrreq>`, "needs a region"},
		{`<instrreq><metric name="WAIT_TIME" g:max-change="3%"/></instrreq>`, "how long the program runs"},
		{`<instrreq activated="true"><metric name="SYSCALL_COUNT" g:max="1"/></instrreq>`, "no meaning"},
		{`<instrreq><metric name="SYSCALL_COUNT" g:max="1"/><thread id="*"/></instrreq>`, "whole programs"},
		{`<instrreq><codeRegion to="a:b"/><metric name="COUNT" g:max="1"/></instrreq>`, "names no function"},
		{`<g:benchmark><metric name="sec/op" g:max="1 s"/></g:benchmark>`, "names no benchmark"},
		{`<g:benchmark name="A"/>`, "has no metric"},
		{`<g:benchmark name="A"><metric name="sec/op" g:exact="true"/></g:benchmark>`, "never exact"},
		{`<g:benchmark name="A"><metric name="MB/s" g:max-change="3%"/></g:benchmark>`, "more is better"},
		{`<g:benchmark name="A"><metric g:max="3"/></g:benchmark>`, "has no name"},
		{`<instrreq m:clock="slow"><metric name="SYSCALL_COUNT" g:max="1"/></instrreq>`, "ordered or fast"},
	} {
		_, err := Parse(gate(test.text))
		var invalid *mir.Error
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), test.want) || invalid.Faults[0].Pos.Line == 0 {
			t.Errorf("%s: %v, want %q with a position", test.text, err, test.want)
		}
	}
	if _, err := Parse([]byte("<gate/>")); err == nil || !strings.Contains(err.Error(), Namespace) {
		t.Errorf("a gate without its namespace: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(gate(metric(`name="WC_TIME" g:max="5 ms" g:of="p99" g:max-change="3%"`)))
	f.Add(gate(metric(`name="COUNT" g:exact="990..1010"`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse(text)
		if err != nil {
			return
		}
		for _, l := range file.Limits {
			if l.Min == nil && l.Max == nil && !l.Equal && l.Change <= 0 || l.Min != nil && l.Max != nil && *l.Min > *l.Max {
				t.Errorf("a limit without meaning: %+v", l)
			}
		}
	})
}
