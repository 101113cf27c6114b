package history

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mirador/cli/gate/recorded"
	"mirador/cli/gate/report"
	"mirador/cli/gate/request"
)

// steps returns a series with noise, and a change of its mean at a point.
func steps(random *rand.Rand, n, at int, change, noise float64) (values []float64) {
	for i := range n {
		v := 100 * (1 + noise*random.NormFloat64())
		if i >= at {
			v *= 1 + change
		}
		values = append(values, v)
	}
	return values
}

// TestDivide simulates series of 60 entries with 1 % noise.
func TestDivide(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	found, chance := 0, 0
	const series = 200
	for range series {
		for _, s := range Divide(steps(random, 60, 40, 0.05, 0.01))[1:] {
			if s.From >= 38 && s.From <= 42 && s.Change > 0.03 && s.Change < 0.07 {
				found++
			}
		}
		chance += len(Divide(steps(random, 60, 60, 0, 0.01))) - 1
	}
	if found < series*99/100 || chance > series/25 {
		t.Errorf("of %d changes of 5 %% %d were found, and %d where there are none", series, found, chance)
	}
}

func TestDivideNumbers(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   string
	}{
		{nil, ""},
		{[]float64{7}, "0-1"},
		{[]float64{5, 5, 5, 5, 5, 5}, "0-6"},
		{[]float64{5, 5, 5, 6, 6, 6}, "0-3 3-6"},
		{[]float64{5, 5, 5, 5, 5, 6, 6}, "0-7"}, // two values are too few
	} {
		text := ""
		for _, s := range Divide(test.values) {
			text += fmt.Sprintf(" %d-%d", s.From, s.To)
		}
		if strings.TrimSpace(text) != test.want {
			t.Errorf("%v: %s, want %s", test.values, text, test.want)
		}
	}
}

const gateText = `<g:gate xmlns:g="urn:mirador:gate"><instrreq><codeRegion from="a:f&lt;int>"/><metric name="COUNT" g:max="1"/><metric name="WC_TIME" g:max="1 s" g:max-change="3%"/></instrreq></g:gate>`

// filled returns a history of twelve entries with a change after six. The first entry is of another
// machine.
func filled(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	gate, err := request.Parse([]byte(gateText))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		about := About{Time: time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC), Commit: fmt.Sprintf("../c%d", i), Machine: "this", Labels: map[string]string{"b": "x", "a": "y"}}
		if i == 0 {
			about.Machine = "other"
		}
		v := &recorded.Values{ByLimit: [][]float64{{10 + float64(i/6)}, {1, 2, 3}, {9}}}
		if err := Add(dir, about, []byte(gateText), gate, v); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestStore checks that entries are read in the order of their times, as they were added, and that
// entries of other machines are left out.
func TestStore(t *testing.T) {
	dir := filled(t)
	entries, err := Read(dir)
	if err != nil || len(entries) != 12 || entries[3].Commit != "../c3" || entries[3].Labels["a"] != "y" {
		t.Fatalf("%v, %+v", err, entries)
	}
	all, left := SeriesOf(entries, "this")
	if left != 1 || len(all) != 2 || all[0].Name != "COUNT of a:f<int>" || all[1].Name != "WC_TIME p50 of a:f<int>" || len(all[0].Points) != 11 {
		t.Fatalf("%d left, %+v", left, all)
	}
	if got := fmt.Sprint(all[0].Stable(), all[1].Points[0].Value); got != "[11 11 11 11 11 11] 2" {
		t.Error(got)
	}
	if all, left := SeriesOf(entries, ""); left != 0 || len(all[0].Points) != 12 {
		t.Error("the entry of the other machine is left out")
	}
	if err := os.WriteFile(filepath.Join(dir, "20260101T000300.000000Z-c3", valuesFile), []byte("<measurement"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "c3 of the history cannot be read") {
		t.Error(err)
	}
	if entries, err := Read(filepath.Join(dir, "none")); err != nil || len(entries) != 0 {
		t.Error(entries, err)
	}
	if f := Fingerprint(); f != Fingerprint() || !strings.Contains(f, "processors, Linux ") {
		t.Error(f)
	}
}

// TestDrawings checks the table, and that the drawing is XML with a point for each value.
func TestDrawings(t *testing.T) {
	entries, err := Read(filled(t))
	if err != nil {
		t.Fatal(err)
	}
	all, _ := SeriesOf(entries, "this")
	var table, svg bytes.Buffer
	if err := errors.Join(WriteTable(&table, all, report.Amount), WriteSVG(&svg, all, report.Amount), WriteSVG(io.Discard, nil, report.Amount)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "change point: +10.00 %, to 11 on average") || !strings.Contains(table.String(), "a:y b:x") {
		t.Errorf("%s", &table)
	}
	points := 0
	for d := xml.NewDecoder(&svg); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			points++
			for _, a := range e.Attr {
				if strings.Contains(a.Value, "NaN") {
					t.Errorf("%+v", e)
				}
			}
		}
	}
	if points != 22 {
		t.Errorf("%d points", points)
	}
}
