package report

import (
	"fmt"
	"io"
	"strings"

	"mirador/cli/gate/verdict"
)

// inCell makes a text safe in a cell of a Markdown table.
var inCell = strings.NewReplacer("|", "\\|", "\n", " ", "\r", " ", "<", "&lt;", "`", "'")

// WriteMarkdown writes the verdicts as a table for a page of a forge.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "### Gate %s: %s\n\n| %s | REASON |\n|%s\n", inCell.Replace(r.Gate), r.Outcome, strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)+1))
	for i := range r.Results {
		one := &r.Results[i]
		cells := append(one.cells(), one.Reason)
		for j := range cells {
			cells[j] = inCell.Replace(cells[j])
		}
		fmt.Fprintf(&text, "| %s |\n", strings.Join(cells, " | "))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&text, "\n%s\n", inCell.Replace(note))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

var (
	inData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	inProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// WriteAnnotations writes the commands by which GitHub Actions shows a failure at the line of the
// source. within is the directory of the sources: only paths below it are found.
func (r *Report) WriteAnnotations(w io.Writer, within string) error {
	for i := range r.Results {
		one := &r.Results[i]
		level := "error"
		switch one.Outcome {
		case verdict.Passed:
			continue
		case verdict.Inconclusive:
			level = "warning"
		}
		at := ""
		if one.Line > 0 {
			at = fmt.Sprintf("file=%s,line=%d,", inProperty.Replace(relative(one.File, within)), one.Line)
		}
		if _, err := fmt.Fprintf(w, "::%s %stitle=%s::%s\n", level, at, inProperty.Replace(one.Name), inData.Replace(string(one.Outcome)+": "+one.Reason)); err != nil {
			return err
		}
	}
	return nil
}

// relative returns a path relative to a directory that contains it.
func relative(path, within string) string {
	return strings.TrimPrefix(path, strings.TrimSuffix(within, "/")+"/")
}
