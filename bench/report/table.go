package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// Row is one figure, with a reference if there is one.
type Row struct {
	What      string
	Unit      Unit
	Ours      Stat
	Than      string // name of the reference, "" if none
	Reference *Stat
	Goal      Goal
	Why       string // why the figure or the reference is missing; "" if not
}

// Table is the result of one section of the benchmark.
type Table struct {
	Name  string // name of the section
	Title string
	Rows  []Row
	Notes []string
}

// Add adds a row.
func (t *Table) Add(r Row) { t.Rows = append(t.Rows, r) }

// Note adds a line below the table, unless it is there already.
func (t *Table) Note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if slices.Contains(t.Notes, line) {
		return
	}
	t.Notes = append(t.Notes, line)
}

// Print writes the table as text.
func (t *Table) Print(out io.Writer) {
	fmt.Fprintf(out, "\n%s\n", t.Title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "measured\tleast\tmedian\treference\tleast\tmedian\tratio of least\tof median\tgoal\tholds\t")
	for _, r := range t.Rows {
		r.print(w)
	}
	w.Flush()
	for _, line := range t.Notes {
		fmt.Fprintln(out, line)
	}
	for _, line := range t.missing() {
		fmt.Fprintln(out, line)
	}
}

// missing returns a line for each reason why figures are missing, with the rows
// concerned.
func (t *Table) missing() (lines []string) {
	const named = 3
	var reasons []string
	rows := make(map[string][]string)
	for _, r := range t.Rows {
		if r.Why == "" {
			continue
		}
		if rows[r.Why] == nil {
			reasons = append(reasons, r.Why)
		}
		rows[r.Why] = append(rows[r.Why], r.subject())
	}
	for _, why := range reasons {
		of := rows[why]
		more := ""
		if len(of) > named {
			more = fmt.Sprintf(" and %d more", len(of)-named)
			of = of[:named]
		}
		lines = append(lines, fmt.Sprintf("No figure for %s%s: %s.", strings.Join(of, "; "), more, strings.TrimSuffix(why, ".")))
	}
	return lines
}

// subject names the missing measurement of a row.
func (r Row) subject() string {
	if r.Than != "" && r.Reference == nil && r.Ours != (Stat{}) {
		return r.What + ", beside " + r.Than
	}
	return r.What
}

func (r Row) print(w io.Writer) {
	figure := func(v float64) string {
		if r.Ours == (Stat{}) && r.Why != "" {
			return "–"
		}
		return r.Unit.Format(v)
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t", r.What, figure(r.Ours.Least), figure(r.Ours.Median), r.Than)
	if r.Reference == nil {
		fmt.Fprint(w, "\t\t\t\t")
	} else {
		least, median := r.Ratios()
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t", r.Unit.Format(r.Reference.Least), r.Unit.Format(r.Reference.Median), times(least), times(median))
	}
	fmt.Fprintf(w, "%s\t%s\t\n", r.Goal.text(r.Unit), r.Goal.judge(r))
}

// Ratios returns the ratios of the least and of the median figures: how many times as
// fast as the reference if that is the goal, else how many times the reference.
func (r Row) Ratios() (least, median float64) {
	if r.Why != "" {
		return math.NaN(), math.NaN()
	}
	a, b := r.Ours, *r.Reference
	if r.Goal.kind == cheaper || r.Goal.kind == beside {
		a, b = b, a
	}
	return ratio(a.Least, b.Least, r.Unit.finest()), ratio(a.Median, b.Median, r.Unit.finest())
}

func times(v float64) string { return Number.Format(v) }
