package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
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
terminal the table is drawn in place, with the latest changes of the first metric of
each line as a row of bars. Elsewhere it prints a table each time, or with --json one
line with all values.`,
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
	g      *globals
	asJSON bool
	past   map[entity]*trend
	drawn  bool // the terminal shows a table
}

func (w *probeWatch) run(ctx context.Context, c *client.Client, id string, every time.Duration) error {
	p, err := c.Probe(ctx, id)
	if err != nil {
		return err
	}
	units, err := c.Units(ctx)
	if err != nil {
		return err
	}
	var r reading
	if err := r.read(ctx, p, units); err != nil {
		return err
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := w.show(&r); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := r.read(ctx, p, units); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

func (w *probeWatch) show(r *reading) error {
	out := w.g.streams.Out
	if w.asJSON {
		return json.NewEncoder(out).Encode(r.values)
	}
	if !isTerminal(out) {
		if w.drawn {
			fmt.Fprintln(out)
		}
		w.drawn = true
		return printTable(out, tableFormat{}, r.table(nil))
	}
	var text bytes.Buffer
	if err := printTable(&text, tableFormat{}, r.table(w.change)); err != nil {
		return err
	}
	// The size is read each time, because the user may have resized the terminal.
	width, height, err := term.GetSize(int(out.(*os.File).Fd()))
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(out, "\x1b[H\x1b[J", fitted(fmt.Sprintf("%s  %s  %s\n", r.probe.ID, r.probe.App, r.probe.Dearest().Name)+text.String(), width, height))
	return err
}

// fitted cuts text to a terminal's size, so that no line wraps or scrolls.
func fitted(text string, width, height int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	lines = lines[:min(len(lines), max(height-1, 1))]
	for i, line := range lines {
		runes := []rune(line)
		lines[i] = string(runes[:min(len(runes), max(width-1, 1))])
	}
	return strings.Join(lines, "\n") + "\n"
}

// change returns the latest changes of the first value of a line, as bars.
func (w *probeWatch) change(line []probeValue) string {
	h := w.past[line[0].entity()]
	if h == nil {
		h = &trend{}
		w.past[line[0].entity()] = h
	}
	if value, err := line[0].Value.Float64(); err == nil {
		h.add(value)
	}
	return h.bars()
}

// trend contains the latest changes of a value.
type trend struct {
	last    float64
	known   bool
	changes []float64
}

// remembered is the number of changes that a trend keeps.
const remembered = 40

func (h *trend) add(value float64) {
	if h.known {
		h.changes = append(h.changes, value-h.last)
		h.changes = h.changes[max(0, len(h.changes)-remembered):]
	}
	h.last, h.known = value, true
}

// bars draws the changes between the least and the greatest of them and zero.
func (h *trend) bars() string {
	low, high := 0.0, 0.0
	for _, c := range h.changes {
		low, high = min(low, c), max(high, c)
	}
	levels := []rune("▁▂▃▄▅▆▇█")
	var text strings.Builder
	for _, c := range h.changes {
		level := 0
		if high > low {
			level = int((c - low) / (high - low) * float64(len(levels)-1))
		}
		text.WriteRune(levels[level])
	}
	return text.String()
}
