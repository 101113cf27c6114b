//go:build linux && amd64

package hold

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// table holds the figures, each beside its reference.
type table []row

type row struct {
	what, than      string
	ours, reference stat
	goal            string
	inverse         bool // the goal is how many times as fast as the reference
}

func (t *table) add(r row) { *t = append(*t, r) }

func (t table) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "measured\tleast\tmedian\treference\tleast\tmedian\tratio of least\tof median\tgoal\t")
	for _, r := range t {
		fmt.Fprintf(w, "%s\t%v\t%v\t%s\t", r.what, short(r.ours.least), short(r.ours.median), r.than)
		if r.reference != (stat{}) {
			fmt.Fprintf(w, "%v\t%v\t%.2f\t%.2f", short(r.reference.least), short(r.reference.median),
				r.ratio(r.ours.least, r.reference.least), r.ratio(r.ours.median, r.reference.median))
		} else {
			fmt.Fprint(w, "\t\t\t")
		}
		fmt.Fprintf(w, "\t%s\t\n", r.goal)
	}
	w.Flush()
}

func (r row) ratio(ours, reference time.Duration) float64 {
	if r.inverse {
		ours, reference = reference, ours
	}
	return float64(ours) / float64(reference)
}

// short leaves out digits that mean nothing.
func short(d time.Duration) time.Duration {
	for unit := time.Duration(1); ; unit *= 10 {
		if d < 10_000*unit {
			return d.Round(unit)
		}
	}
}
