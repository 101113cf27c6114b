package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"mirador/mir/client"
)

func newProbeWatch(g *globals) *cobra.Command {
	var every time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "watch [--every 1s] ID",
		Short: "Show the values of a probe as they change",
		Long: `Shows the values of a probe until it is interrupted or the probe is gone. On a
terminal the table is drawn in place and fits the terminal, also after a resize; the first
metric of each line has a row of bars: of its changes, with the latest one by second, if
it counts or sums up, and of its values otherwise. Ctrl-C leaves the last table.
Elsewhere it prints a table with the time each time, or with --json one line with all values.`,
		Example:           "  mirador probe watch probe-1\n  mirador probe watch --every 200ms --json probe-1",
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: g.completeProbes,
		RunE: func(cmd *cobra.Command, args []string) error {
			if every <= 0 {
				return usagef("--every must be positive")
			}
			return g.withGateway(func(c *client.Client) error {
				w := probeWatch{g: g, asJSON: asJSON, past: make(map[entity]*trend)}
				return w.run(cmd.Context(), c, args[0], every)
			})
		},
	}
	cmd.Flags().DurationVar(&every, "every", time.Second, "the time between two readings")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one line for each reading")
	return cmd
}

// probeWatch shows readings of one probe.
type probeWatch struct {
	g       *globals
	asJSON  bool
	reading reading
	latest  time.Time // of the reading
	past    map[entity]*trend
	printed bool // a table
}

func (w *probeWatch) run(ctx context.Context, c *client.Client, id string, every time.Duration) error {
	p, err := c.Probe(ctx, id)
	if err != nil {
		return err
	}
	catalog, err := c.Catalog(ctx)
	if err != nil {
		return err
	}
	if err := w.read(ctx, c, p, catalog); err != nil {
		return err
	}
	show := w.print
	resized := make(chan os.Signal, 1)
	if terminal, ok := w.g.streams.Out.(*os.File); ok && isTerminal(terminal) && !w.asJSON {
		signal.Notify(resized, syscall.SIGWINCH)
		defer signal.Stop(resized)
		show = func() error { return w.draw(terminal) }
		fmt.Fprint(terminal, otherScreen)
		defer func() {
			fmt.Fprint(terminal, firstScreen)
			w.print() // what the user saw last
		}()
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := show(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-resized:
		case <-tick.C:
			if err := w.read(ctx, c, p, catalog); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
		}
	}
}

// read reads the values, and adds the first one of each line to its trend.
func (w *probeWatch) read(ctx context.Context, c *client.Client, p *client.Probe, catalog []client.Metric) error {
	if err := w.reading.read(ctx, c, p, catalog); err != nil {
		return err
	}
	now := time.Now()
	w.latest = now
	lines, _ := w.reading.lines()
	for _, line := range lines {
		h := w.past[line[0].entity()]
		if h == nil {
			h = &trend{sums: line[0].sumsUp()}
			w.past[line[0].entity()] = h
		}
		if value, err := line[0].Value.Float64(); err == nil {
			h.add(value, now)
		}
	}
	return nil
}

// sumsUp reports whether the value only ascends, so that its changes say more.
func (v *probeValue) sumsUp() bool {
	return v.metric.Kind == "counter" && !v.latest && (v.Function == "" || v.Function == "SUM")
}

// print prints a table, or JSON.
func (w *probeWatch) print() error {
	out := w.g.streams.Out
	if w.asJSON {
		return json.NewEncoder(out).Encode(w.reading.values)
	}
	if w.printed {
		fmt.Fprintln(out)
	}
	w.printed = true
	timed := w.reading
	timed.at = w.latest
	return timed.printTable(out)
}

// Control sequences of terminals.
const (
	otherScreen = "\x1b[?1049h\x1b[?25l" // leave the screen as it is, use another one, hide the cursor
	firstScreen = "\x1b[?25h\x1b[?1049l"
	clearScreen = "\x1b[H\x1b[J"
)

// draw draws the table with the trends, as large as the terminal is now.
func (w *probeWatch) draw(terminal *os.File) error {
	width, height, err := term.GetSize(int(terminal.Fd()))
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := w.reading.printTable(&text); err != nil {
		return err
	}
	table := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	w.addTrends(table, width-1)
	r := &w.reading
	all := append([]string{fmt.Sprintf("%s  %s  %s  %s", plain(r.probe.ID), plain(r.probe.App), r.probe.Dearest().Name, plain(r.note()))}, table...)
	_, err = fmt.Fprint(terminal, clearScreen+fitted(all, width-1, height-1))
	return err
}

// addTrends appends the trends to the lines of a table that is width characters wide.
func (w *probeWatch) addTrends(table []string, width int) {
	widest := 0
	for _, line := range table {
		widest = max(widest, len([]rune(line)))
	}
	lines, _ := w.reading.lines()
	if len(lines) == 0 {
		return
	}
	for i := range table {
		trends := "TREND"
		if i > 0 {
			h := w.past[lines[i-1][0].entity()]
			trends = fmt.Sprintf("%*s  %s", rateWidth, h.rate(), h.bars(width-widest-rateWidth-4))
		} else if lines[0][0].sumsUp() {
			trends = fmt.Sprintf("%*s  CHANGE", rateWidth, "PER S")
		}
		table[i] += strings.Repeat(" ", widest-len([]rune(table[i]))+2) + trends
	}
}

// fitted cuts lines to a size, so that none wraps or scrolls.
func fitted(lines []string, width, height int) string {
	if left := len(lines) - height; left > 0 {
		lines = append(lines[:max(height-1, 0)], fmt.Sprintf("… %d more lines", left+1))
	}
	for i, line := range lines {
		runes := []rune(line)
		lines[i] = string(runes[:min(len(runes), max(width, 1))])
	}
	return strings.Join(lines, "\n") + "\n"
}

// rateWidth is the width of a rate.
const rateWidth = 8

// trend contains the latest values of an entity, or their changes.
type trend struct {
	sums   bool // the value sums up, so that its changes are shown
	last   float64
	at     time.Time // of last; zero before the first value
	points []float64
	rising float64 // by second, at last
}

// remembered is the number of points that a trend keeps.
const remembered = 400

func (h *trend) add(value float64, now time.Time) {
	switch {
	case !h.sums:
		h.points = append(h.points, value)
	case !h.at.IsZero():
		h.points = append(h.points, value-h.last)
		h.rising = (value - h.last) / now.Sub(h.at).Seconds()
	}
	h.points = h.points[max(0, len(h.points)-remembered):]
	h.last, h.at = value, now
}

// rate returns the latest change by second, "" for a value that does not sum up.
func (h *trend) rate() string {
	if !h.sums || len(h.points) == 0 {
		return ""
	}
	return fmt.Sprintf("%.4g", h.rising)
}

// bars draws the latest points between the least and the greatest of them and zero.
func (h *trend) bars(width int) string {
	points := h.points[max(0, len(h.points)-max(width, 0)):]
	low, high := 0.0, 0.0
	for _, p := range points {
		low, high = min(low, p), max(high, p)
	}
	levels := []rune("▁▂▃▄▅▆▇█")
	var text strings.Builder
	for _, p := range points {
		level := 0
		if high > low {
			level = int((p - low) / (high - low) * float64(len(levels)-1))
		}
		text.WriteRune(levels[level])
	}
	return text.String()
}
