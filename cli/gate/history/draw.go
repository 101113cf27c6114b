package history

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteTable prints series: a line for each entry, with the change points. amount writes a value.
func WriteTable(w io.Writer, all []Series, amount func(v float64, unit string) string) error {
	for _, s := range all {
		fmt.Fprintf(w, "%s\n", s.Name)
		t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "TIME\tCOMMIT\tVALUE\tLABELS\tCHANGE")
		for n, seg := range s.Segments {
			for i := seg.From; i < seg.To; i++ {
				p := s.Points[i]
				change := ""
				if n > 0 && i == seg.From {
					change = fmt.Sprintf("change point: %+.2f %%, to %s on average", 100*seg.Change, amount(seg.Mean, s.Unit))
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", p.Time.UTC().Format(time.DateTime), p.Commit[:min(len(p.Commit), 12)], amount(p.Value, s.Unit), labels(p.Labels), change)
			}
		}
		if err := t.Flush(); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return nil
}

func labels(all map[string]string) string {
	return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(all), "map["), "]") // sorted by name
}

// Sizes in pixels of the chart of one series.
const (
	chartWidth, chartHeight = 820, 200
	leftEdge, rightEdge     = 90, 800
	topEdge, bottomEdge     = 40, 180
)

// WriteSVG draws series below each other: values as points, the means of segments as lines.
func WriteSVG(w io.Writer, all []Series, amount func(v float64, unit string) string) error {
	out := bufio.NewWriter(w)
	height := max(len(all), 1) * chartHeight
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="history of a gate">
<style>svg { background: #fff } text { font: 12px system-ui, sans-serif; fill: #1f2328 } .name { font-weight: 600 } circle { fill: #0b62c4 } .mean { stroke: #c2410c; stroke-width: 2 } .edge { stroke: #d8dee4 }</style>
`, chartWidth, height, chartWidth, height)
	for i := range all {
		fmt.Fprintf(out, `<g transform="translate(0,%d)">`+"\n", i*chartHeight)
		all[i].draw(out, amount)
		fmt.Fprintln(out, "</g>")
	}
	fmt.Fprintln(out, "</svg>")
	return out.Flush()
}

func (s *Series) draw(w io.Writer, amount func(v float64, unit string) string) {
	least, most := math.Inf(1), math.Inf(-1)
	for _, p := range s.Points {
		least, most = min(least, p.Value), max(most, p.Value)
	}
	margin := max(most-least, 0.02*math.Abs(most), math.SmallestNonzeroFloat32) / 10
	least, most = least-margin, most+margin
	x := func(i float64) float64 { return leftEdge + (rightEdge-leftEdge)*(i+0.5)/float64(len(s.Points)) }
	y := func(v float64) float64 { return bottomEdge - (bottomEdge-topEdge)*(v-least)/(most-least) }
	fmt.Fprintf(w, `<text class="name" x="%d" y="24">%s</text>`+"\n", leftEdge, escaped(s.Name))
	for _, v := range []float64{least + margin, most - margin} {
		fmt.Fprintf(w, `<line class="edge" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="4" y="%.1f">%s</text>`+"\n", leftEdge, rightEdge, y(v), y(v), y(v)+4, escaped(amount(v, s.Unit)))
	}
	for _, seg := range s.Segments {
		fmt.Fprintf(w, `<line class="mean" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`+"\n", x(float64(seg.From)-0.4), x(float64(seg.To)-0.6), y(seg.Mean), y(seg.Mean))
	}
	for i, p := range s.Points {
		fmt.Fprintf(w, `<circle cx="%.1f" cy="%.1f" r="3"><title>%s</title></circle>`+"\n", x(float64(i)), y(p.Value),
			escaped(fmt.Sprintf("%s %s: %s", p.Time.UTC().Format(time.DateTime), p.Commit, amount(p.Value, s.Unit))))
	}
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a builder takes all
	return b.String()
}
