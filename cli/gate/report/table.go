package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// columns are the headings of the table.
var columns = []string{"VERDICT", "WHAT", "LIMIT", "BASE", "HEAD", "CHANGE", "INTERVAL"}

func (r *Result) cells() []string {
	return []string{strings.ToUpper(string(r.Outcome)), r.Name, r.Limit, r.amount(r.Base), r.amount(r.Head), r.change(), r.interval()}
}

// WriteTable prints the verdicts for people: a line for each limit, then the reasons of those
// that did not pass, and what was found about the machine.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(columns, "\t"))
	for i := range r.Results {
		fmt.Fprintln(t, strings.Join(r.Results[i].cells(), "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range r.Results {
		if one := &r.Results[i]; one.Reason != "" {
			fmt.Fprintf(w, "%s: %s\n", one.Name, one.Reason)
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintln(w, note)
	}
	_, err := fmt.Fprintf(w, "The gate %s after %.0f s.\n", told[string(r.Outcome)], r.Seconds)
	return err
}

// told are the outcomes in sentences.
var told = map[string]string{"passed": "passed", "failed": "failed", "inconclusive": "was inconclusive"}
