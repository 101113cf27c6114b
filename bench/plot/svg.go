package plot

import (
	"bufio"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Sizes in pixels.
const (
	width, height = 820, 480
	left, top     = 76, 56
	right, bottom = 196, 76 // the names of series are right of the lines
	lineHeight    = 17
)

// style uses colours that also differ in brightness, for colour-blind readers; the
// browser chooses between light and dark.
const style = `
svg { color-scheme: light dark; --paper: #ffffff; --ink: #1f2328; --faint: #59636e; --grid: #d8dee4;
 --s0: #0b62c4; --s1: #c2410c; --s2: #15803d; --s3: #a21caf; --s4: #8a6100; --s5: #0e7490; --s6: #be123c; --s7: #4b5563; }
@media (prefers-color-scheme: dark) {
 svg { --paper: #0d1117; --ink: #f0f6fc; --faint: #9198a1; --grid: #2b3138;
 --s0: #6cb6ff; --s1: #ff9b5e; --s2: #57d37f; --s3: #e58bf2; --s4: #e3b341; --s5: #4fd1e0; --s6: #ff8097; --s7: #b1bac4; } }
.paper { fill: var(--paper); }
text { font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--ink); }
.title { font-size: 16px; font-weight: 600; }
.faint { fill: var(--faint); font-size: 12px; }
.grid { stroke: var(--grid); stroke-width: 1; }
.axis { stroke: var(--faint); stroke-width: 1; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.lead { fill: none; stroke-width: 1; stroke-dasharray: 2 2; }
`

// colours is the number of colours; further series share them.
const colours = 8

// WriteSVG draws the chart.
func (c Chart) WriteSVG(out io.Writer) error {
	w := &writer{out: bufio.NewWriter(out)}
	x, y := c.scales()
	w.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" aria-label="%s">`, width, height, escape(c.Title))
	w.printf("<style>%s</style>", style)
	w.printf(`<rect class="paper" width="%d" height="%d" rx="6"/>`, width, height)
	w.text(left, 30, "title", "start", c.Title)
	w.text(left, height-12, "faint", "start", c.Note)
	w.axes(c, x, y)
	places := ends(c.Series, y)
	for i, s := range c.Series {
		if len(s.Points) > 0 {
			w.series(s, x, y, places[i])
		}
	}
	w.printf("</svg>")
	return w.flush()
}

func (c Chart) scales() (x, y scale) {
	var xs, ys []float64
	for _, s := range c.Series {
		for _, p := range s.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	return newScale(c.X, xs, left, width-left-right), newScale(c.Y, ys, height-bottom, top+bottom-height)
}

// ends returns the vertical positions of the names of series: beside the ends of their
// lines, but without overlaps.
func ends(list []Series, y scale) []float64 {
	places := make([]float64, len(list))
	order := make([]int, len(list))
	for i, s := range list {
		order[i] = i
		places[i] = top
		if n := len(s.Points); n > 0 {
			places[i] = y.at(s.Points[n-1].Y)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(places[a], places[b]) })
	// Move overlapping names down, and then those below the axis up.
	for k := 1; k < len(order); k++ {
		places[order[k]] = max(places[order[k]], places[order[k-1]]+lineHeight)
	}
	limit := float64(height - bottom)
	for k := len(order) - 1; k >= 0; k-- {
		places[order[k]] = min(places[order[k]], limit)
		limit = places[order[k]] - lineHeight
	}
	return places
}

// writer writes elements, and keeps the first error.
type writer struct {
	out *bufio.Writer
	err error
}

func (w *writer) printf(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, format+"\n", args...)
	}
}

func (w *writer) flush() error {
	if w.err != nil {
		return w.err
	}
	return w.out.Flush()
}

func (w *writer) text(x, y float64, class, anchor, s string) {
	w.printf(`<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`, x, y, class, anchor, escape(s))
}

func (w *writer) line(x1, y1, x2, y2 float64, class string) {
	w.printf(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`, x1, y1, x2, y2, class)
}

func (w *writer) axes(c Chart, x, y scale) {
	const floor, end = height - bottom, width - right
	for _, v := range x.ticks() {
		w.line(x.at(v), top, x.at(v), floor, "grid")
		w.text(x.at(v), floor+18, "faint", "middle", c.X.Kind.text(v))
	}
	for _, v := range y.ticks() {
		w.line(left, y.at(v), end, y.at(v), "grid")
		w.text(left-8, y.at(v)+4, "faint", "end", c.Y.Kind.text(v))
	}
	w.line(left, floor, end, floor, "axis")
	w.line(left, top, left, floor, "axis")
	w.text((left+end)/2, floor+38, "", "middle", c.X.Label)
	w.printf(`<text transform="translate(16 %d) rotate(-90)" text-anchor="middle">%s</text>`, (top+floor)/2, escape(c.Y.Label))
}

func (w *writer) series(s Series, x, y scale, place float64) {
	colour := fmt.Sprintf("var(--s%d)", s.Colour%colours)
	var path strings.Builder
	for i, p := range s.Points {
		step := "L"
		if i == 0 {
			step = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f ", step, x.at(p.X), y.at(p.Y))
	}
	w.printf(`<path class="line" stroke="%s" d="%s"/>`, colour, strings.TrimSpace(path.String()))
	for _, p := range s.Points {
		fill := colour
		if p.Y < y.least {
			fill = "var(--paper)" // hollow: the figure is less than the axis shows
		}
		w.printf(`<circle cx="%.1f" cy="%.1f" r="3.5" stroke="%s" stroke-width="1.5" fill="%s"><title>%s</title></circle>`, x.at(p.X), y.at(p.Y), colour, fill,
			escape(fmt.Sprintf("%s: %.3g, %.3g", s.Name, p.X, p.Y)))
	}
	last := s.Points[len(s.Points)-1]
	const gap = 14
	w.printf(`<path class="lead" stroke="%s" d="M%.1f %.1f L%.1f %.1f"/>`, colour, x.at(last.X)+5, y.at(last.Y), float64(width-right+gap-3), place)
	w.printf(`<text x="%d" y="%.1f" style="fill:%s">%s</text>`, width-right+gap, place+4, colour, escape(s.Name))
}

// escape escapes a text for XML.
func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a write to a builder does not fail
	return b.String()
}
