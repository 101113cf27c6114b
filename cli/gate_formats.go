package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"mirador/cli/gate/recorded"
	"mirador/cli/gate/report"
	"mirador/cli/gate/verdict"
)

// gateFormats are the outputs of a gate besides the table.
type gateFormats struct {
	json                                bool
	junit, markdown, sarif, openMetrics string // files; "": not written
	benchmarks                          string
}

func (f *gateFormats) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print JSON")
	flags.StringVar(&f.junit, "junit", "", "write the verdicts to this file as JUnit test results; inconclusive ones are skipped")
	flags.StringVar(&f.markdown, "markdown", "", "write a Markdown table to this file")
	flags.StringVar(&f.sarif, "sarif", "", "write the verdicts to this file in SARIF")
	flags.StringVar(&f.openMetrics, "openmetrics", "", "write values and verdicts to this file in the OpenMetrics format")
	flags.StringVar(&f.benchmarks, "benchfmt", "", "write the values to this file in the Go benchmark format, which benchstat reads")
}

// write prints the verdicts and writes the files. In GitHub Actions it also adds to the summary of
// the job, and shows failures at their lines of the source.
func (f *gateFormats) write(out io.Writer, rep *report.Report) error {
	within, err := os.Getwd()
	if err != nil {
		return err
	}
	if f.json {
		err = printJSON(out, rep)
	} else {
		err = rep.WriteTable(forPeople(out))
	}
	for _, file := range []struct {
		path  string
		write func(io.Writer) error
		flag  int
	}{
		{f.junit, rep.WriteJUnit, os.O_TRUNC},
		{f.markdown, rep.WriteMarkdown, os.O_TRUNC},
		{f.sarif, func(w io.Writer) error { return rep.WriteSARIF(w, within) }, os.O_TRUNC},
		{f.openMetrics, rep.WriteOpenMetrics, os.O_TRUNC},
		{f.benchmarks, func(w io.Writer) error { return recorded.WriteBenchmarks(w, rep.Gate, sampled(rep)) }, os.O_TRUNC},
		{os.Getenv("GITHUB_STEP_SUMMARY"), rep.WriteMarkdown, os.O_APPEND},
	} {
		if file.path != "" {
			err = errors.Join(err, writeReport(file.path, file.flag, file.write))
		}
	}
	if os.Getenv("GITHUB_ACTIONS") == "true" && !f.json {
		err = errors.Join(err, rep.WriteAnnotations(out, within))
	}
	return err
}

func writeReport(path string, flag int, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, 0o666)
	if err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return errors.Join(write(f), f.Close())
}

// sampled returns the values of a report for the Go benchmark format.
func sampled(rep *report.Report) (list []recorded.Sampled) {
	for i := range rep.Results {
		r := &rep.Results[i]
		list = append(list, recorded.Sampled{Region: r.Region, Metric: r.Metric, Of: r.Of, Unit: r.Unit, Base: r.BaseValues, Head: r.HeadValues})
	}
	return list
}

// publish prints the verdicts, and returns what did not pass as an error.
func (f *gateFormats) publish(g *globals, rep *report.Report) error {
	err := f.write(g.streams.Out, rep)
	if err == nil && rep.Outcome != verdict.Passed {
		err = gateVerdict{rep.Outcome}
	}
	return err
}
