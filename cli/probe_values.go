package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"mirador/mir/client"
)

func newProbeValue(g *globals) *cobra.Command {
	var format tableFormat
	var label string
	cmd := &cobra.Command{
		Use:   "value ID… | --label LABEL",
		Short: "Print the values of probes",
		Long: `Prints the current values of probes: a line for each process or thread, a column for
each metric. Times are in milliseconds; "latest" is the value of the latest execution of
the region. With --json and --xml each value is an object with its process, its thread and the
thread's name, metric and unit; a value that was not measured yet is null or absent.`,
		Example:           "  mirador probe value probe-1\n  mirador probe value probe-1 --json | jq '.[0].value'",
		Args:              probeArguments(&label),
		ValidArgsFunction: g.completeProbes,
		RunE: func(cmd *cobra.Command, ids []string) error {
			return g.withGateway(func(c *client.Client) error {
				ids, err := selected(cmd.Context(), c, ids, label, "")
				if err != nil {
					return err
				}
				var all readings
				for _, id := range ids {
					p, err := c.Probe(cmd.Context(), id)
					if err != nil {
						return err
					}
					r, err := readProbe(cmd.Context(), c, p)
					if err != nil {
						return err
					}
					all = append(all, r)
				}
				return all.print(g.streams.Out, format)
			})
		},
	}
	format.flags(cmd)
	labelFlag(g, cmd, &label)
	return cmd
}

// probeValue is a value of a probe as scripts read it.
type probeValue struct {
	Probe    string      `json:"probe" xml:"probe,attr"`
	Node     string      `json:"node,omitempty" xml:"node,attr,omitempty"`
	Process  string      `json:"process,omitempty" xml:"process,attr,omitempty"`
	Thread   string      `json:"thread,omitempty" xml:"thread,attr,omitempty"`
	Name     string      `json:"name,omitempty" xml:"name,attr,omitempty"` // the thread's
	Metric   string      `json:"metric" xml:"metric,attr"`
	Function string      `json:"function,omitempty" xml:"function,attr,omitempty"` // or a percentile, such as p99
	Value    json.Number `json:"value" xml:"value,attr,omitempty"`
	Unit     string      `json:"unit" xml:"unit,attr"`

	metric client.Metric // the row of the catalog
	latest bool          // the value is that of the latest execution
}

// MarshalJSON writes a value that was not measured yet as null.
func (v probeValue) MarshalJSON() ([]byte, error) {
	type plainValue probeValue
	if v.Value != "" {
		return json.Marshal(plainValue(v))
	}
	return json.Marshal(struct {
		plainValue
		Value *json.Number `json:"value"`
	}{plainValue: plainValue(v)})
}

// column is the heading of a value in a table.
func (v *probeValue) column() string {
	name := v.Metric
	if v.latest {
		name += " latest"
	}
	if v.Function != "" {
		name += " " + v.Function
	}
	if v.Unit != "" && v.Unit != "1" {
		name += " (" + v.Unit + ")"
	}
	return name
}

// entity is the part of a value that tells its line in a table from others.
type entity struct{ probe, node, process, thread string }

func (v *probeValue) entity() entity { return entity{v.Probe, v.Node, v.Process, v.Thread} }

// reading contains the values of a probe at one time.
type reading struct {
	probe  client.Status
	notice string
	values []probeValue
	names  map[string]string // of threads, "" if they are not known
	at     time.Time         // a column of the table; zero for none
}

// readProbe reads the values of a probe.
func readProbe(ctx context.Context, c *client.Client, p *client.Probe) (r reading, err error) {
	catalog, err := c.Catalog(ctx)
	if err != nil {
		return r, err
	}
	return r, r.read(ctx, c, p, catalog)
}

// read asks for the values again.
func (r *reading) read(ctx context.Context, c *client.Client, p *client.Probe, catalog []client.Metric) error {
	got, err := p.Value(ctx)
	if err != nil {
		return err
	}
	r.probe, r.notice, r.values = p.Last(), got.Notice, nil
	for i := range got.Values {
		r.add(&got.Values[i], catalog)
	}
	r.name(ctx, c)
	return nil
}

// add appends a value, and its percentiles.
func (r *reading) add(read *client.Value, catalog []client.Metric) {
	metric, _ := client.FindMetric(catalog, read.Metric)
	v := probeValue{
		Probe: read.Probe, Node: read.Node, Process: read.Process, Thread: read.Thread,
		Metric: read.Metric, Function: string(read.Function), Value: json.Number(read.Text), Unit: metric.Unit, metric: metric,
	}
	v.latest = r.probe.Region != "" && v.Function == "" && metric.Name != "COUNT"
	r.values = append(r.values, v)
	for _, p := range read.Percentiles {
		v.latest, v.Function, v.Value = false, fmt.Sprintf("p%g", p.Of), json.Number(p.Value)
		r.values = append(r.values, v)
	}
}

func (r reading) print(w io.Writer, format tableFormat) error { return readings{r}.print(w, format) }

// readings are the values of some probes.
type readings []reading

func (list readings) print(w io.Writer, format tableFormat) error {
	values := []probeValue{}
	for _, r := range list {
		values = append(values, r.values...)
	}
	if format.json || format.xml {
		return printTable(w, format, table[probeValue]{root: "values", row: "value", rows: values})
	}
	var errs []error
	for i, r := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if note := r.note(); note != "" {
			fmt.Fprintln(w, plain(note))
		}
		errs = append(errs, r.printTable(w))
	}
	return errors.Join(errs...)
}

const allEnded = "all measured processes have ended"

// note returns what the gateway did with the probe without a request.
func (r *reading) note() string {
	if r.probe.Gone {
		return cmp.Or(r.notice, r.probe.Notice, allEnded)
	}
	return cmp.Or(r.notice, r.probe.Notice)
}

// printTable prints the values, or why there are none.
func (r *reading) printTable(w io.Writer) error {
	if len(r.values) > 0 {
		return printTable(w, tableFormat{}, r.table())
	}
	why := "nothing was measured yet"
	if r.probe.Region != "" {
		why = "no thread has executed " + r.probe.Region + " since the probe was activated or reset"
	}
	_, err := fmt.Fprintf(w, "%s has no values: %s\n", plainCell(r.probe.ID), plain(why))
	return err
}

// table arranges the values: a line for each entity, and a column for each metric and
// function.
func (r *reading) table() table[[]string] {
	lines, columns := r.lines()
	names := []func(*probeValue) string{
		func(v *probeValue) string { return v.Node }, func(v *probeValue) string { return v.Process }, func(v *probeValue) string { return v.Thread },
		func(v *probeValue) string { return v.Name },
	}
	var header []string
	var shown []func(*probeValue) string
	if !r.at.IsZero() {
		header, shown = []string{"TIME"}, append(shown, func(*probeValue) string { return r.at.Format("15:04:05.000") })
	}
	for i, name := range names {
		if slices.ContainsFunc(r.values, func(v probeValue) bool { return name(&v) != "" }) {
			header, shown = append(header, []string{"NODE", "PROCESS", "THREAD", "NAME"}[i]), append(shown, name)
		}
	}
	header = append(header, columns...)
	t := table[[]string]{header: header, cells: func(cells []string) []string { return cells }}
	for _, line := range lines {
		var cells []string
		for _, name := range shown {
			cells = append(cells, name(&line[0]))
		}
		for _, column := range columns {
			i := slices.IndexFunc(line, func(v probeValue) bool { return v.column() == column })
			cell := "-"
			if i >= 0 && line[i].Value != "" {
				cell = line[i].Value.String()
			}
			cells = append(cells, cell)
		}
		t.rows = append(t.rows, cells)
	}
	return t
}

// lines groups the values by entity, in their order, and lists the columns.
func (r *reading) lines() (lines [][]probeValue, columns []string) {
	index := make(map[entity]int)
	for _, v := range r.values {
		if column := v.column(); !slices.Contains(columns, column) {
			columns = append(columns, column)
		}
		i, ok := index[v.entity()]
		if !ok {
			i = len(lines)
			index[v.entity()] = i
			lines = append(lines, nil)
		}
		lines[i] = append(lines[i], v)
	}
	return lines, columns
}
