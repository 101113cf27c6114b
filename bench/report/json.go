package report

import (
	"encoding/json"
	"io"
	"math"
	"time"

	"mirador/bench/plot"
)

// Document contains the results of one run of the benchmark.
type Document struct {
	Begun   time.Time
	Machine Machine
	Tables  []*Table
	Charts  []plot.Chart
}

// WriteJSON writes the document as JSON.
func (d Document) WriteJSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "\t")
	return e.Encode(struct {
		Begun    time.Time      `json:"begun"`
		Machine  Machine        `json:"machine"`
		Sections []sectionValue `json:"sections"`
		Charts   []plot.Chart   `json:"charts,omitempty"`
	}{d.Begun, d.Machine, sections(d.Tables), d.Charts})
}

type sectionValue struct {
	Name  string     `json:"name"`
	Title string     `json:"title"`
	Rows  []rowValue `json:"rows"`
	Notes []string   `json:"notes,omitempty"`
}

type rowValue struct {
	Measured  string  `json:"measured"`
	Unit      Unit    `json:"unit,omitempty"`
	Ours      *Stat   `json:"ours,omitempty"`
	Than      string  `json:"reference,omitempty"`
	Reference *Stat   `json:"reference_figures,omitempty"`
	Ratio     *Stat   `json:"ratio,omitempty"`
	Goal      string  `json:"goal,omitempty"`
	Holds     Verdict `json:"holds,omitempty"`
	Why       string  `json:"why,omitempty"`
}

func sections(tables []*Table) []sectionValue {
	list := []sectionValue{}
	for _, t := range tables {
		s := sectionValue{Name: t.Name, Title: t.Title, Notes: t.Notes, Rows: []rowValue{}}
		for _, r := range t.Rows {
			s.Rows = append(s.Rows, r.value())
		}
		list = append(list, s)
	}
	return list
}

func (r Row) value() rowValue {
	v := rowValue{
		Measured: r.What, Unit: r.Unit, Than: r.Than, Reference: r.Reference,
		Goal: r.Goal.text(r.Unit), Holds: r.Goal.judge(r), Why: r.Why,
	}
	if r.Why == "" || r.Ours != (Stat{}) {
		v.Ours = &r.Ours
	}
	if r.Reference != nil {
		// JSON cannot represent NaN.
		if least, median := r.Ratios(); !math.IsNaN(least) && !math.IsNaN(median) {
			v.Ratio = &Stat{least, median}
		}
	}
	return v
}
