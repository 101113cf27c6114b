package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"mirador/cli/gate/report"
)

// gateFormats are the outputs of a gate besides the table.
type gateFormats struct {
	json                                bool
	junit, markdown, sarif, openMetrics string // files; "": not written
}

func (f *gateFormats) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print JSON")
	flags.StringVar(&f.junit, "junit", "", "write the verdicts to this file as JUnit test results; inconclusive ones are skipped")
	flags.StringVar(&f.markdown, "markdown", "", "write a Markdown table to this file")
	flags.StringVar(&f.sarif, "sarif", "", "write the verdicts to this file in SARIF")
	flags.StringVar(&f.openMetrics, "openmetrics", "", "write values and verdicts to this file in the OpenMetrics format")
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
