package plot

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
)

func sample() Chart {
	return Chart{
		Name: "sample", Title: `Costs <of> "probes" & others`, Note: "A machine",
		X: Axis{Label: "probes", Kind: Numbers}, Y: Axis{Label: "ns a hit", Kind: Nanoseconds, Least: 0.1},
		Series: []Series{
			{"inline", 0, []Point{{1, -0.3}, {100, 1.8}, {10000, 2.2}}},
			{"kernel", 1, []Point{{1, 650}, {100, 660}, {10000, 900}}},
			{"bare", 9, []Point{{1, 640}, {100, 650}, {10000, 890}}},
			{"nobody", 2, nil},
		},
	}
}

// elements parses a drawing and counts its elements.
func elements(t *testing.T, svg string) map[string]int {
	t.Helper()
	count := make(map[string]int)
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok {
			count[e.Name.Local]++
			for _, a := range e.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("%s of %s is %s", a.Name.Local, e.Name.Local, a.Value)
				}
			}
		}
	}
}

func TestSVGIsWellFormed(t *testing.T) {
	var b strings.Builder
	if err := sample().WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	got := elements(t, b.String())
	if got["svg"] != 1 || got["circle"] != 9 || got["style"] != 1 {
		t.Errorf("the drawing has %v", got)
	}
	for _, want := range []string{"&lt;of&gt;", ">inline</text>", ">10 k</text>", ">1 µs</text>", "prefers-color-scheme: dark", ">ns a hit</text>"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in it", want)
		}
	}
	if n := strings.Count(b.String(), `fill="var(--paper)"`); n != 1 {
		t.Errorf("%d points are drawn as this or less, not 1", n)
	}
	if strings.Contains(b.String(), "nobody") {
		t.Error("a series without figures has a name in the drawing")
	}
}

func TestEmptyChart(t *testing.T) {
	var b strings.Builder
	if err := (Chart{}).WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	elements(t, b.String())
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestErrorsOfWriting(t *testing.T) {
	if sample().WriteSVG(full{}) == nil {
		t.Error("WriteSVG does not report the error of its writer")
	}
}

func TestScale(t *testing.T) {
	s := newScale(Axis{Least: 0.1}, []float64{-1, 0.05, 950}, 100, 400)
	if s.from != -1 || s.to != 3 {
		t.Errorf("the scale has the decades %v to %v, not -1 to 3", s.from, s.to)
	}
	for v, want := range map[float64]float64{0.1: 100, 1: 200, 1000: 500, -5: 100, 0: 100} {
		if got := s.at(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v is drawn at %v, not %v", v, got, want)
		}
	}
	if got := len(s.ticks()); got != 5 {
		t.Errorf("there are %d ticks, not 5", got)
	}
	if s := newScale(Axis{}, []float64{10, 10}, 0, 1); s.to <= s.from {
		t.Error("an axis has no length")
	}
}

func TestNamesDoNotOverlap(t *testing.T) {
	var list []Series
	for i := range 10 {
		list = append(list, Series{fmt.Sprint(i), i, []Point{{1, 100 - float64(i)/100}}})
	}
	y := newScale(Axis{}, []float64{1, 1000}, height-bottom, top+bottom-height)
	places := ends(list, y)
	for i := range places {
		if places[i] > height-bottom {
			t.Errorf("name %d is below the axis", i)
		}
		for k := range i {
			if math.Abs(places[i]-places[k]) < lineHeight-0.001 {
				t.Errorf("names %d and %d are at %v and %v", k, i, places[k], places[i])
			}
		}
	}
}

func TestFiguresInFewLetters(t *testing.T) {
	for want, got := range map[string]string{
		"0.1 ns": Nanoseconds.text(0.1), "10 µs": Nanoseconds.text(10_000), "1 s": Nanoseconds.text(1e9),
		"100": Numbers.text(100), "10 k": Numbers.text(10_000), "1 M": Numbers.text(1e6), "0.1 %": Shares.text(0.001), "100 %": Shares.text(1),
	} {
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
