//go:build linux && amd64

package probe

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// row is what a contender adds to a call, in nanoseconds, and its ratio to the first
// contender: of the least figures, and the median of the ratios of the rounds.
type row struct {
	what, name          string
	least, median       float64
	ratio, ratioOfLeast float64
}

func newRow(what, name string, added, first []float64) row {
	r := row{what: what, name: name, least: slices.Min(added), median: median(added)}
	ratios := make([]float64, min(len(added), len(first)))
	for i := range ratios {
		ratios[i] = added[i] / first[i]
	}
	r.ratio, r.ratioOfLeast = median(ratios), r.least/slices.Min(first)
	return r
}

func printTable(out io.Writer, rows []row) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "probe\tby\tleast ns\tmedian ns\tratio of least\tmedian ratio\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f\t%.2f\t%.2f\t\n", r.what, r.name, r.least, r.median, r.ratioOfLeast, r.ratio)
	}
	w.Flush()
}
